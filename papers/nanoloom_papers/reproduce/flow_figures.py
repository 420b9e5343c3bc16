"""Figures 8 and 9 of the dataflow paper: int8 networks and binary layers, and peers."""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from nanoloom.errors import Error
from nanoloom.target.cached_host import to_dict
from nanoloom.target.facts import Target
from nanoloom_papers.reproduce import array_files, flow_binary, flow_networks
from nanoloom_papers.reproduce.contenders import NANOLOOM, Company, Remote
from nanoloom_papers.reproduce.expected_results import Expected
from nanoloom_papers.reproduce.flow_networks import Network
from nanoloom_papers.reproduce.jobs import Job
from nanoloom_papers.reproduce.tables import csv_of
from nanoloom_papers.reproduce.timing import QUICK, Pace, interleaved

Say = Callable[[str, int, int], None]
COUNTS = (1, 2)  # threads
PACE = Pace(rounds=5, longest=2.0)
TUNED, TUNED_COUNT = "tvm-tuned", 1  # tuning takes minutes: for one thread
FIELDS = ("figure", "subject", "element", "threads", "contender", "name",
          "median_seconds", "nanoloom_times", "note")  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """What is measured: a network of Figure 8, or a layer of Figure 9.

    element: what it multiplies.  counts: of threads.
    """

    figure: int
    name: str
    element: str
    draw: Callable[[], Network]
    counts: tuple[int, ...] = COUNTS


@dataclass
class Row:
    """A subject with a number of threads: medians and names by contender.

    absent: who is not there, and why.
    """

    subject: Subject
    threads: int
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    names: dict[str, str] = field(default_factory=dict[str, str])
    absent: dict[str, str] = field(default_factory=dict[str, str])

    def is_of(self, subject: Subject) -> bool:
        own = self.subject
        names = (own.figure, own.name, own.element)
        return names == (subject.figure, subject.name, subject.element)

    def times(self, key: str) -> float | None:
        """How many times as fast nanoloom is as another one."""
        ours, theirs = self.seconds.get(NANOLOOM.key), self.seconds.get(key)
        return theirs / ours if ours and theirs else None


def subjects(*, quick: bool) -> list[Subject]:
    """The paper's networks and layers."""
    names = ("resnet18", "vgg11") if quick else flow_networks.NETWORKS
    networks = [
        Subject(8, name, "int8", partial(flow_networks.drawn, name, quick=quick))
        for name in names
    ]
    layers = flow_binary.QUICK if quick else flow_binary.LAYERS
    made = {"binary": flow_binary.binary, "int8": flow_binary.integers}
    found = [
        Subject(9, layer.name, element, partial(draw, layer), (1,))
        for layer in layers
        for element, draw in made.items()
    ]
    every = [*networks, *found]
    return [replace(each, counts=(1,)) for each in every] if quick else every


def run(
    target: Target,
    company: Company,
    folder: Path,
    say: Say,
    *,
    quick: bool,
    done: Sequence[Row] = (),
) -> Iterator[Row]:
    """Every network and layer: drawn, checked, timed in turns.

    folder: for models.  done: rows of an earlier run, given as they are where those of
    a subject are complete.
    """
    chosen = subjects(quick=quick)
    for number, subject in enumerate(chosen):
        known = [row for row in done if row.is_of(subject)]
        if len(known) == len(subject.counts):
            yield from known
            continue
        say(f"figure {subject.figure}: {subject.name}", number, len(chosen))
        network = subject.draw()
        place = Path(tempfile.mkdtemp(prefix="network-", dir=folder))
        try:
            onnx.save(network.model, place / "model.onnx")
            array_files.save(place / "inputs.npz", {"image": network.image})
            for threads in subject.counts:
                row = Row(subject, threads, absent=company.absent())
                if quick or threads != TUNED_COUNT or subject.figure != 8:
                    row.absent.setdefault(TUNED, "tuned for networks and one thread")
                job = job_of(place, threads, target)
                measure(row, job, network, company, QUICK if quick else PACE)
                yield row
        finally:
            shutil.rmtree(place, ignore_errors=True)


def job_of(place: Path, threads: int, target: Target) -> Job:
    facts: dict[str, Any] = {"target": to_dict(target), "cache": str(place / "cache")}
    model, inputs = place / "model.onnx", place / "inputs.npz"
    return Job(threads, str(model), str(inputs), facts=facts)


def measure(row: Row, job: Job, network: Network, company: Company, pace: Pace) -> None:
    """Open everybody, leave out who is wrong or does not take it, time the others."""
    value = network.value
    right = Expected(value, 0 * value + network.allowed)
    ready: list[Remote] = []
    for peer in (NANOLOOM, *company.peers):
        if peer.key in row.absent:
            continue
        try:
            remote = company.open(peer.key, job)
            complaint = right.complaint(remote.outputs()[0])
        except Error as error:
            row.absent[peer.key] = str(error)
            continue
        if complaint:
            row.absent[peer.key] = complaint
        else:
            ready.append(remote)
    for remote, times in zip(ready, interleaved(ready, pace), strict=True):
        row.seconds[remote.key], row.names[remote.key] = times.median, remote.name


def binary_gain(rows: Sequence[Row]) -> dict[str, float]:
    """How many times as fast a layer of bits is as that of bytes, by its name."""
    found: dict[tuple[str, str], float] = {}
    for row in rows:
        if row.subject.figure == 9 and NANOLOOM.key in row.seconds:
            found[row.subject.name, row.subject.element] = row.seconds[NANOLOOM.key]
    return {
        name: found[name, "int8"] / seconds
        for (name, element), seconds in found.items()
        if element == "binary" and (name, "int8") in found
    }


# ---- files ---------------------------------------------------------------------------


def records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """A flat record for each row and contender, in FIELDS' order."""
    made: list[dict[str, Any]] = []
    for row in rows:
        about = row.subject
        for key in [*row.seconds, *row.absent]:
            values = (
                about.figure, about.name, about.element, row.threads, key,
                row.names.get(key, key), row.seconds.get(key), row.times(key),
                row.absent.get(key, ""),
            )  # fmt: skip
            made.append(dict(zip(FIELDS, values, strict=True)))
    return made


def as_csv(rows: Sequence[Row]) -> str:
    return csv_of(FIELDS, records(rows))


def from_csv(text: str) -> list[Row]:
    """The rows that `as_csv` wrote, none of a file with other columns."""
    reader = csv.DictReader(text.splitlines())
    if tuple(reader.fieldnames or ()) != FIELDS:
        return []
    every = {
        (each.figure, each.name, each.element): each
        for quick in (False, True)
        for each in subjects(quick=quick)
    }
    found: dict[tuple[Subject, int], Row] = {}
    for each in reader:
        key = int(each["figure"]), each["subject"], each["element"]
        if key not in every:
            continue
        place = every[key], int(each["threads"])
        row = found.setdefault(place, Row(*place))
        who, seconds = each["contender"], each["median_seconds"]
        if seconds:
            row.seconds[who], row.names[who] = float(seconds), each["name"]
        else:
            row.absent[who] = each["note"]
    return list(found.values())


def as_dict(rows: Sequence[Row]) -> dict[str, Any]:
    """What `--json` prints of these figures."""
    return {"networks": records(rows), "binary_of_int8": binary_gain(rows)}
