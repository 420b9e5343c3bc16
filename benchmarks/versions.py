"""This code beside another commit's: the same models, compiled by each, in turns.

    python -m benchmarks versions COMMIT [--of layers,recurrences,gemm,models]
        [--models resnet18,bge-small] [--only WORDS] [--every N] [--threads 1,2]
        [--rounds N] [--quick] [--json FILE] [--folder DIR]

COMMIT is taken into a worktree of its own, which goes again.  speed: its time over that
of this code, the median of the rounds; beside it the interval that holds the true
median with 95 %.  What seems slower is measured longer; what is slower again in new
processes, since where memory lies in one can cost a quarter: the fastest of each count.
Status 1 if an interval lies below 0.98, or outputs differ.  --every 4: of each kind
every fourth alone.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import comb
from pathlib import Path

from benchmarks.arguments import parser_of
from benchmarks.bisect import git
from benchmarks.models import MODELS
from benchmarks.models.quantized import parts
from benchmarks.results import ROOT
from benchmarks.show import Progress, print_sheet
from benchmarks.systems import AGREEMENT, Task, difference
from benchmarks.version_processes import Pair, Version
from benchmarks.version_tasks import KINDS, tasks_of
from nanoloom.errors import Error
from nanoloom_papers.reproduce.tables import Sheet
from nanoloom_papers.reproduce.timing import QUICK, Pace

DEFAULT = "resnet18,mobilenet_v2,densenet121,bge-small,resnet18-int8,bge-small-int8"
LEAST = 0.98  # speed; below it is slower
LONGER = 4  # times as many rounds for what seems slower
PROCESSES = 3  # of each version, for what is slower
SURE = 0.95


@dataclass(frozen=True)
class Compared:
    """A model in both.  before, after: median seconds; speeds: of every round."""

    kind: str
    name: str
    threads: int
    before: float
    after: float
    speeds: tuple[float, ...]
    differs: bool  # the outputs, by more than AGREEMENT
    compile_seconds: tuple[float, float]

    @property
    def speed(self) -> float:
        return statistics.median(self.speeds)

    @property
    def is_slower(self) -> bool:
        """Whether the whole interval says so."""
        return interval(self.speeds)[1] < LEAST


def interval(values: Sequence[float]) -> tuple[float, float]:
    """What holds the median of what was drawn with SURE, whatever its distribution.

    Between the k-th smallest and the k-th largest; all of them where they are few.
    """
    ranked, n = sorted(values), len(values)
    outside, k = 0.0, 0
    while k < (n - 1) // 2:
        outside += 2 * comb(n, k) / 2**n
        if outside > 1 - SURE:
            break
        k += 1
    least = max(0, k - 1)
    return ranked[least], ranked[n - 1 - least]


def in_turns(
    before: Version, after: Version, pace: Pace
) -> tuple[float, float, tuple[float, ...]]:
    """Median seconds of both, and the speed of every round."""
    length = min(statistics.median(v.remote.time(2, 1)) for v in (before, after))
    calls, times = pace.calls(length), list[tuple[float, float]]()
    while not is_enough([old / new for old, new in times], pace.rounds):
        if len(times) % 2:
            one = before.burst(calls, pace)
            times.append((one, after.burst(calls, pace)))
        else:
            other = after.burst(calls, pace)
            times.append((before.burst(calls, pace), other))
    olds, news = zip(*times, strict=True)
    speeds = tuple(old / new for old, new in times)
    return statistics.median(olds), statistics.median(news), speeds


def is_enough(speeds: Sequence[float], rounds: int) -> bool:
    """Not while a version seems slower, and the interval does not say so."""
    if len(speeds) < rounds:
        return False
    seems = statistics.median(speeds) < LEAST <= interval(speeds)[1]
    return not seems or len(speeds) >= rounds * LONGER


def compared(kind: str, task: Task, both: Pair, pace: Pace) -> Compared:
    """A task in both.  Raises Error where one does not run it."""
    before, after, threads = both.before, both.after, both.threads
    seconds = before.open(task, threads), after.open(task, threads)
    far = difference(after.remote.outputs(), before.remote.outputs())
    differs = far > AGREEMENT[task.precision]
    return Compared(
        kind, task.name, threads, *in_turns(before, after, pace), differs, seconds
    )


def settled(kind: str, task: Task, both: Pair, pace: Pace) -> Compared:
    """A task in as many pairs of processes as it takes to say that it is slower."""
    found = [compared(kind, task, both, pace)]
    while found[-1].is_slower and len(found) < PROCESSES:
        both.close()
        both.start()
        found.append(compared(kind, task, both, pace))
    return fastest(found)


def fastest(found: Sequence[Compared]) -> Compared:
    """Of one task: the least time of each version, where that is not slower."""
    least = min(each.before for each in found), min(each.after for each in found)
    speed = least[0] / least[1]
    if len(found) == 1 or speed < LEAST:
        return min(found, key=lambda each: each.after)
    return replace(found[-1], before=least[0], after=least[1], speeds=(speed,))


def run(given: argparse.Namespace, tree: Path, progress: Progress) -> list[Compared]:
    pace = QUICK if given.quick else Pace(rounds=given.rounds)
    found: list[Compared] = []
    for threads in map(int, given.threads.split(",")):
        with tempfile.TemporaryDirectory(prefix="nanoloom-") as place:
            scratch = Path(place)
            both = Pair(tree, threads, scratch)
            try:
                for kind, task in chosen(given, given.folder or scratch):
                    line = f"{kind} {task.name}, threads: {threads}"
                    try:
                        found.append(settled(kind, task, both, pace))
                        line += f": {found[-1].speed:.3f}"
                    except Error as error:
                        line += f": {error}"
                    progress.advance(line)
            finally:
                both.close()
    return found


def chosen(given: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Task]]:
    """The tasks that the words name, each behind its kind."""
    for kind in given.of.split(","):
        tasks = tasks_of(kind, given.models.split(","), folder)
        for number, task in enumerate(tasks):
            if number % given.every == 0 and given.only in task.name:
                yield kind, task


def sheet(found: Sequence[Compared], commit: str) -> Sheet:
    """The slowest of each kind first, and what each kind comes to."""
    cells = [
        (
            each.kind,
            each.name,
            str(each.threads),
            f"{1e3 * each.before:.3f}",
            f"{1e3 * each.after:.3f}",
            f"{each.speed:.3f}",
            "{:.3f} to {:.3f}".format(*interval(each.speeds)),
            "slower" if each.is_slower else "",
        )
        for each in sorted(found, key=order)
    ]
    heads = ("kind", "model", ">threads", ">before ms", ">after ms", ">speed")
    title = f"this code beside {commit}"
    return Sheet(title, (*heads, ">95 %", "-"), tuple(cells), tuple(means(found)))


def order(each: Compared) -> tuple[int, int, float]:
    return each.threads, KINDS.index(each.kind), each.speed


def means(found: Sequence[Compared]) -> Iterator[str]:
    """Geometric means, and the seconds that compiling took."""
    for kind in dict.fromkeys(each.kind for each in found):
        speeds = [each.speed for each in found if each.kind == kind]
        mean = statistics.geometric_mean(speeds)
        told = f"{mean:.3f} in the mean of {len(speeds)}, least {min(speeds):.3f}"
        yield f"{kind}: {told}"
    old, new = (sum(each.compile_seconds[i] for each in found) for i in (0, 1))
    yield f"compiled in {old:.1f} s before, in {new:.1f} s now"


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of("versions", __doc__)
    parser.add_argument("commit")
    parser.add_argument("--of", default=",".join(KINDS), help="kinds, by commas")
    parser.add_argument("--models", default=DEFAULT, help="of the kind models")
    parser.add_argument("--only", default="", help="a word in the names")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--threads", default="1", help="by commas")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--quick", action="store_true", help="tiny: does it work?")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--folder", type=Path, help="where models are kept")
    given = parser.parse_args(arguments)
    unknown = {*given.of.split(",")} - {*KINDS}
    if unknown:
        parser.error(f"--of: {', '.join(unknown)} is none of {', '.join(KINDS)}")
    lost = [n for n in given.models.split(",") if parts(n)[0] not in MODELS]
    if lost:
        parser.error(f"no model is named {', '.join(lost)}")
    return given


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    commit = git(ROOT, "rev-parse", "--short", given.commit)
    with tempfile.TemporaryDirectory(prefix="nanoloom-before-") as place:
        tree = Path(place, "tree")
        git(ROOT, "worktree", "add", "--detach", str(tree), commit)
        try:
            with Progress(0) as progress:
                found = run(given, tree, progress)
        finally:
            git(ROOT, "worktree", "remove", "--force", str(tree))
    if not found:
        raise Error("nothing was compared", hint="fewer words in --only")
    print_sheet(sheet(found, commit))
    if given.json:
        given.json.write_text(json.dumps([asdict(x) for x in found], indent=1))
    wrong = [each.name for each in found if each.differs]
    if wrong:
        print(f"other outputs: {', '.join(wrong)}")
    if wrong or (not given.quick and any(each.is_slower for each in found)):
        sys.exit(1)
