"""One export of the zoo: `python -m benchmarks.zoo.child NAME [--untimed|--inductor]`.

The last line of stdout is what is known of it so far, as JSON; a line is written before
whatever may end the process.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.zoo import pytorch
from benchmarks.zoo.entry import Array, Entry, Exported, Run
from benchmarks.zoo.zoo import entries

THREADS, TURNS = 2, 15
AGAINST = "ort"
NOISE = 0.1  # of a measured time: what the rest of the machine works beside it
MAKERS = {"torch": pytorch.eager, "inductor": pytorch.inductor}


def memory(word: str) -> int:
    """Of this process, in bytes.  word: VmRSS, or VmHWM for the most so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(x.split()[1]) * 1024 for x in lines if x.startswith(word))


def processor_seconds() -> float:
    """Of this process and of all that it started, those that still run among them."""
    rows: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            rows[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
    family, before = {os.getpid()}, set[int]()
    while family != before:
        before = set(family)
        family |= {pid for pid, fields in rows.items() if int(fields[1]) in before}
    ticks = sum(int(x) for pid in family for x in rows[pid][11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def machine_seconds() -> float:
    """That all CPUs have worked."""
    user, nice, system, _, _, *rest = Path("/proc/stat").read_text().split()[1:9]
    ticks = sum(map(int, (user, nice, system, *rest)))
    return ticks / os.sysconf("SC_CLK_TCK")


def main(name: str, untimed: bool, inductor: bool = False) -> None:
    entry = next(x for x in entries() if x.name == name)
    row: dict[str, Any] = {"name": name, "status": "not exported"}
    if untimed:
        row["untimed"] = True
    row["_beside"] = [*MAKERS] if inductor else ["torch"]
    last = [] if untimed else [timed]
    with tempfile.TemporaryDirectory() as scratch:
        for step in (export, runtime, compiled, compare, *last):
            say(row)
            if not step(row, entry, Path(scratch)):
                break
    say(row)


def say(row: dict[str, Any]) -> None:
    kept = {key: value for key, value in row.items() if not key.startswith("_")}
    print(json.dumps(kept), flush=True)


def export(row: dict[str, Any], entry: Entry, scratch: Path) -> bool:
    try:
        row["_exported"] = entry.make(scratch)
    except Exception as error:  # noqa: BLE001 - exporters raise all there is
        row["reason"] = first_line(error)
        return False
    row["status"] = "runtime crashes"
    return True


def runtime(row: dict[str, Any], entry: Entry, scratch: Path) -> bool:
    """ONNX Runtime's own run; programs of PyTorch have none."""
    from nanoloom.errors import Error
    from nanoloom.inspect.peers import open_peer

    found: Exported = row["_exported"]
    row["status"] = "crashed"
    if found.path.suffix == ".pt2":
        return True
    try:
        row["_peer"] = open_peer("ort", found.path, found.feeds, THREADS)
        row["_theirs"] = row["_peer"].run()
    except Error as error:
        row["status"], row["reason"] = "not run by ONNX Runtime", first_line(error)
        return False
    return True


def compiled(row: dict[str, Any], entry: Entry, scratch: Path) -> bool:
    import nanoloom
    from nanoloom.cache import Cache

    found: Exported = row["_exported"]
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the most so far begins anew
    start, others = processor_seconds(), machine_seconds()
    try:
        program = nanoloom.compile(
            found.path, threads=THREADS, cache=Cache(scratch / "cache")
        )
        names = [x.name for x in program.inputs]
        feeds = dict(zip(names, found.feeds.values(), strict=False))
        row["_feeds"] = feeds if found.path.suffix == ".pt2" else found.feeds
        row["_ours"] = program.run(row["_feeds"])
    except nanoloom.Error as error:
        row["status"], row["reason"] = "refused", first_line(error)
        return False
    row["cold"] = processor_seconds() - start
    others = machine_seconds() - others - row["cold"]
    if others > NOISE * row["cold"]:
        row["loaded"] = True
    row["memory"] = memory("VmHWM") - before
    row["_program"] = program
    return True


def compare(row: dict[str, Any], entry: Entry, scratch: Path) -> bool:
    """With ONNX Runtime within the bound of `nanoloom verify`, and with PyTorch."""
    import nanoloom
    from nanoloom.cli.model_inputs import Inputs
    from nanoloom.cli.progress import Watch
    from nanoloom.cli.request import Request
    from nanoloom.cli.verify import Question, Verdict, compare_outputs

    found: Exported = row["_exported"]
    request = Request(
        found.path, {}, {}, 0, THREADS, scratch / "cache", False, False, False
    )
    row["status"] = "not compared"
    inputs = Inputs(row["_feeds"], ())
    try:
        with Watch() as watch:
            question = Question(
                request, AGAINST, row["_program"], inputs, scratch, watch
            )
            verdict = Verdict(compare_outputs(question))
    except nanoloom.Error as error:
        row["reason"] = first_line(error)
        return True
    row["status"] = "right" if verdict.passed else "differs"
    row["reason"] = next((x.reason for x in verdict.outputs if x.reason), "")
    row["units"] = max((units(x.absolute, x.bound) for x in verdict.outputs), default=0)
    ours, bounds = list(row["_ours"].values()), [x.bound for x in verdict.outputs]
    if len(found.wanted) == len(ours):
        gaps = [gap(a, b) for a, b in zip(ours, found.wanted, strict=True)]
        row["torch units"] = max(map(units, gaps, bounds), default=0)
        if row["torch units"] > 1:  # what was read may be wrong: there alone it shows
            row["status"] = "differs"
            row["reason"] = row["reason"] or "is not what PyTorch gives"
    return True


def gap(one: Array, other: Array) -> float:
    if one.shape != other.shape:
        return float("inf")
    wide = abs(one.astype(np.float64) - other.astype(np.float64))
    return float(np.nan_to_num(wide).max(initial=0))


def units(difference: float, bound: float) -> float:
    return difference / bound if bound else float(difference > 0) * 1e9


def timed(row: dict[str, Any], entry: Entry, scratch: Path) -> bool:
    """Each peer's time divided by ours, medians of runs in turns."""
    from nanoloom.inspect.timing import interleaved

    program, feeds = row["_program"], row["_feeds"]

    def run() -> object:
        return program.run(feeds)

    if "_peer" in row:
        ours, theirs = interleaved([run, row["_peer"].run], TURNS)
        row["ratio"] = theirs.median / ours.median
        row["milliseconds"] = ours.median * 1e3
    modules = runs_of_pytorch(row)
    if modules:
        ours, *theirs = pytorch.in_turns([run, *modules.values()], TURNS)
        row |= {key: x / ours for key, x in zip(modules, theirs, strict=True)}
        row.setdefault("milliseconds", ours * 1e3)
    return True


def runs_of_pytorch(row: dict[str, Any]) -> dict[str, Run]:
    """By the key of their ratio: the module as it is, and compiled by Inductor."""
    found: Exported = row["_exported"]
    peers: dict[str, Run] = {}
    for name in row["_beside"] if found.module is not None else ():
        try:
            peers[f"{name} ratio"] = MAKERS[name](found, THREADS)
        except Exception as error:  # noqa: BLE001 - modules raise all there is
            row[f"{name} reason"] = first_line(error)
    return peers


def first_line(error: BaseException) -> str:
    """Without colours, and folders that are gone."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
    text = text.replace(f"{tempfile.gettempdir()}/", "")
    lines = text.splitlines() or [type(error).__name__]
    return f"{type(error).__name__}: {lines[0]}"[:300]


if __name__ == "__main__":
    main(sys.argv[1], "--untimed" in sys.argv[2:], "--inductor" in sys.argv[2:])
