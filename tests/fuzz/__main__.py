"""python -m tests.fuzz: random graphs and damaged files, as many as asked for.

Every finding is printed with its seed and kept in a folder of its own; `--again` runs
one of them once more, in this process.  Classical models are drawn where scikit-learn
and the exporters are installed (`make classical`), modules where PyTorch is (`make
modules`).
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.cases import Bench, Outcome
from tests.fuzz.families import families
from tests.fuzz.pool import Case, run_cases
from tests.fuzz.worker import run_case

FAULTS = ("crash", "hang", "foreign", "memory", "difference")


KEPT = ("graph", "old", "types", "module", "written")  # why these were refused


@dataclass
class Tally:
    """The outcomes so far.  results: where findings are kept."""

    results: Path
    total: int | None
    started: float = field(default_factory=time.monotonic)
    cases: Counter[str] = field(default_factory=Counter[str])
    statuses: Counter[str] = field(default_factory=Counter[str])
    faults: Counter[str] = field(default_factory=Counter[str])
    refusals: Counter[str] = field(default_factory=Counter[str])
    operators: Counter[str] = field(default_factory=Counter[str])

    def add(self, case: Case, outcome: Outcome, folder: Path) -> None:
        self.cases[case.kind] += 1
        self.statuses[f"{case.kind} {outcome.status}"] += 1
        self.operators.update(outcome.operators)
        finding = outcome.finding
        if outcome.status == "finding" and finding is not None:
            self.faults[finding.kind] += 1
            kept = self.results / str(case)
            shutil.rmtree(kept, ignore_errors=True)
            if folder.exists():
                shutil.copytree(folder, kept)
            kept.mkdir(parents=True, exist_ok=True)
            (kept / "finding.txt").write_text(f"{finding.kind}\n{finding.text}\n")
            lines = finding.text.strip().splitlines()
            first = lines[0] if finding.kind == "difference" else lines[-1]
            self.say(f"{case.kind} {case.seed}: {finding.kind}: {first[:300]}")
        elif finding is not None and case.kind in KEPT:
            self.refusals[finding.text] += 1
            with (self.results / "refusals.txt").open("a") as file:
                file.write(f"{case}: {finding.text}\n")
        self.show()

    def say(self, text: str) -> None:
        print(f"\r{text}\033[K" if sys.stderr.isatty() else text, flush=True)

    def show(self) -> None:
        done = sum(self.cases.values())
        if sys.stderr.isatty() or done % 100 == 0:
            of = "" if self.total is None else f" of {self.total}"
            passed = time.monotonic() - self.started
            faults = sum(self.faults.values())
            end = "\033[K" if sys.stderr.isatty() else "\n"
            start = "\r" if sys.stderr.isatty() else ""
            line = f"{start}{done}{of} cases, {faults} findings, {passed:.0f} s{end}"
            print(line, end="", file=sys.stderr, flush=True)

    def summary(self) -> str:
        rows = [f"{count} {kind}" for kind, count in sorted(self.statuses.items())]
        found = [f"{self.faults[kind]} {kind}" for kind in FAULTS]
        lines = ["", "cases: " + ", ".join(rows), "findings: " + ", ".join(found)]
        rare = [f"{k} {v}" for k, v in sorted(self.operators.items())]
        lines.append("operators: " + ", ".join(rare))
        if self.faults:
            again = "python -m tests.fuzz --again KIND SEED"
            lines.append(f"kept in {self.results}; one of them once more: {again}")
        return "\n".join(lines)


def cases(ways: Sequence[tuple[str, int | None]], seed: int) -> Iterator[Case]:
    """All kinds in turns, so many of each; None: without end."""
    for number in itertools.count():
        left = [kind for kind, count in ways if count is None or number < count]
        if not left:
            return
        yield from (Case(kind, seed * 1_000_000 + number) for kind in left)


def until(moment: float, made: Iterator[Case]) -> Iterator[Case]:
    return itertools.takewhile(lambda _: time.monotonic() < moment, made)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--damaged", type=int, default=200)
    parser.add_argument("--families", type=int, default=20, help="of each family")
    kinds = ["graph", "damage", *families()]
    parser.add_argument(
        "--only", nargs="+", metavar="KIND", choices=kinds, default=kinds
    )
    parser.add_argument("--minutes", type=float, help="as many as fit, of all kinds")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=Path("results/fuzz"))
    parser.add_argument("--again", nargs=2, metavar=("KIND", "SEED"))
    return parser.parse_args()


def again(kind: str, seed: int) -> int:
    """One case in this process; its model and arrays stay."""
    bench = Bench(Path(tempfile.mkdtemp(prefix="nanoloom-fuzz-")))
    outcome = run_case(kind, seed, bench)
    print(outcome.status, *outcome.operators)
    if outcome.finding is not None:
        print(outcome.finding.kind, outcome.finding.text, sep="\n")
    print(bench.case)
    return int(outcome.status == "finding")


def main() -> int:
    given = arguments()
    if given.again:
        return again(given.again[0], int(given.again[1]))
    timed = given.minutes is not None
    given.results.mkdir(parents=True, exist_ok=True)
    counts = dict.fromkeys(families(), given.families)
    counts |= {"graph": given.graphs, "damage": given.damaged}
    counts = {kind: counts[kind] for kind in given.only}
    ways = [(kind, None if timed else n) for kind, n in counts.items()]
    tally = Tally(given.results, None if timed else sum(counts.values()))
    made = cases(ways, given.seed)
    if timed:
        made = until(time.monotonic() + 60 * given.minutes, made)
    with tempfile.TemporaryDirectory(prefix="nanoloom-fuzz-") as folder:
        run_cases(made, Path(folder), given.jobs, tally.add)
    print(tally.summary())
    return int(bool(tally.faults))


if __name__ == "__main__":
    sys.exit(main())
