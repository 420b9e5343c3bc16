"""Every model of the zoo against ONNX Runtime and PyTorch: `make models`.

    python -m benchmarks.zoo [WORD ...] [--seconds 240] [--gigabytes 10]
        [--results FILE] [--again] [--untimed] [--every N]

Each export has a process of its own, which ends at a time and a size.  Results are
appended to a file of JSON lines, each with its commit; what is in it is not measured
again, except what was measured without its times (--untimed, for a machine that does
other things as well).
WORD: a part of names.  The page docs/models.md is written at the end.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
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
    parser.add_argument("--every", type=int, default=1, help="one in so many")
    return parser.parse_args()


def measured(
    name: str, seconds: float, gigabytes: float, untimed: bool
) -> dict[str, Any]:
    """The last line that the child wrote, and how it ended."""
    limit = int(gigabytes * 2**30)
    command = [sys.executable, "-m", "benchmarks.zoo.child", name]
    command += ["--untimed"] if untimed else []
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


def is_whole(row: dict[str, Any], untimed: bool) -> bool:
    return untimed or not row.get("untimed", False)


def main() -> None:
    given = arguments()
    known: dict[str, Any] = {}
    if given.results.exists():
        rows = map(json.loads, given.results.read_text().splitlines())
        known = {row["name"]: row for row in rows}
    names = [x.name for x in entries()]
    chosen = [n for n in names if all(word in n for word in given.words)]
    tree = commit()
    for name in chosen[:: given.every]:
        if name in known and not given.again and is_whole(known[name], given.untimed):
            continue
        row = measured(name, given.seconds, given.gigabytes, given.untimed)
        known[name] = row = {**row, "commit": tree}
        print(f"{row['status']:24} {name}  {row.get('reason', '')}", flush=True)
        with given.results.open("a") as file:
            file.write(json.dumps(row) + "\n")
    rows = [known[name] for name in names if name in known]
    write(rows, len(names), ROOT / "docs/models.md")


if __name__ == "__main__":
    main()
