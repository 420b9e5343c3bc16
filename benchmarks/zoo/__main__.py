"""Every model of the zoo against ONNX Runtime and PyTorch: `make models`.

    python -m benchmarks.zoo [WORD ...] [--seconds 240] [--gigabytes 10]
        [--results FILE] [--again] [--untimed] [--every N] [--torch] [--inductor]

Each export has a process of its own, which ends at a time and a size.  Results are
appended to a file of JSON lines, each with its commit; what is in it is not measured
again, except what was measured without its times (--untimed, for a machine that does
other things as well), and what has no times beside PyTorch (--torch) or what Inductor
compiles (--inductor), if these are asked for.
WORD: a part of names.  At the end the file is sorted, with a line for each export, and
the page docs/models.md is written.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.zoo.page import write
from benchmarks.zoo.zoo import entries

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results/models.jsonl"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--untimed", action="store_true")
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--inductor", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="one in so many")
    return parser.parse_args()


def measured(
    name: str, seconds: float, gigabytes: float, options: Sequence[str]
) -> dict[str, Any]:
    """The last line that the child wrote, and how it ended."""
    limit = int(gigabytes * 2**30)
    command = [sys.executable, "-m", "benchmarks.zoo.child", name, *options]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
    )  # fmt: skip
    try:
        out, complaints = child.communicate(timeout=seconds)
        ended = "" if not child.returncode else f"status {child.returncode}"
    except subprocess.TimeoutExpired:
        child.kill()
        out, complaints = child.communicate()
        ended = f"took longer than {seconds:g} s"
    lines = [line for line in out.splitlines() if line.startswith('{"name"')]
    row = json.loads(lines[-1]) if lines else {"name": name, "status": "not exported"}
    if ended:
        last = complaints.strip().splitlines()[-1:] or [""]
        row["reason"] = row.get("reason") or f"{ended} {last[0]}"[:300]
        if ended.startswith("took") and row["status"] == "crashed":
            row["status"] = "timed out"
    return row


def commit() -> str:
    """Of the tree that is measured."""
    asked = ["git", "rev-parse", "--short=8", "HEAD"]
    found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "no checkout"


def is_whole(row: dict[str, Any], untimed: bool, beside: Sequence[str] = ()) -> bool:
    """beside: of what a right one has times, or the reason why not."""
    if untimed:
        return True
    known = all({f"{x} ratio", f"{x} reason"} & row.keys() for x in beside)
    return not row.get("untimed", False) and (known or row["status"] != "right")


def main() -> None:
    given = arguments()
    known: dict[str, Any] = {}
    if given.results.exists():
        rows = map(json.loads, given.results.read_text().splitlines())
        known = {row["name"]: row for row in rows}
    listed = list(entries())
    chosen = [x for x in listed if all(word in x.name for word in given.words)]
    options = [f"--{x}" for x in ("untimed", "inductor") if getattr(given, x)]
    asked = [x for x in ("torch", "inductor") if getattr(given, x)]
    tree = commit()
    for entry in chosen[:: given.every]:
        name, beside = entry.name, asked if entry.has_module else ()
        found = known.get(name)
        if found and not given.again and is_whole(found, given.untimed, beside):
            continue
        row = measured(name, given.seconds, given.gigabytes, options)
        known[name] = row = {**row, "commit": tree}
        print(f"{row['status']:24} {name}  {row.get('reason', '')}", flush=True)
        with given.results.open("a") as file:
            file.write(json.dumps(row) + "\n")
    rows = [known[x.name] for x in listed if x.name in known]
    given.results.write_text("".join(json.dumps(row) + "\n" for row in rows))
    write(rows, len(listed), ROOT / "docs/models.md")


if __name__ == "__main__":
    main()
