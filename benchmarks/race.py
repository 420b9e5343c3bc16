"""Model files in nanoloom and its peers, for each number of threads; a table each."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.show import Progress, print_sheet
from benchmarks.systems import Measured, Task, job_of, measure
from nanoloom.target.host import host
from nanoloom_papers.reproduce.contenders import NANOLOOM, Company
from nanoloom_papers.reproduce.tables import Sheet
from nanoloom_papers.reproduce.timing import QUICK, Pace

Tasks = Callable[[argparse.Namespace, Path], Iterator[Task]]


def race(
    given: argparse.Namespace,
    tasks: Tasks,
    sheet: Callable[[Sequence[Measured], int], Sheet],
) -> None:
    """Measure, print, and write what `--json` names.

    given: the words of `add_race`.  tasks: of these, with files in a folder.
    """
    counts = [int(word) for word in given.threads.split(",")]
    every: list[Measured] = []
    with Progress(len(counts)) as progress:
        for threads in counts:
            rows = measured(given, tasks, threads, progress)
            print_sheet(sheet(rows, threads))
            every += rows
            progress.advance(f"threads: {threads}")
    if given.json:
        found = [{"name": r.task.name, **r.to_dict()} for r in every]
        given.json.write_text(json.dumps(found, indent=1))


def measured(
    given: argparse.Namespace, tasks: Tasks, threads: int, progress: Progress
) -> list[Measured]:
    pace = QUICK if given.quick else Pace(rounds=given.rounds)
    rows: list[Measured] = []
    with (
        tempfile.TemporaryDirectory(prefix="nanoloom-") as place,
        Company(tuple(given.against.split(",")), Path(place)) as company,
    ):
        scratch = Path(place)
        folder: Path = getattr(given, "folder", None) or scratch
        folder.mkdir(parents=True, exist_ok=True)
        for task in tasks(given, folder):
            progress.say(f"{task.name}, threads: {threads}")
            job = job_of(task, threads, scratch, host(), scratch / NANOLOOM.key)
            rows.append(measure(task, job, company, pace))
    return rows
