"""The parts of an encoder between its matrix products, at the sizes of bert-base.

    python -m benchmarks parts [--threads 1,2] [--only softmax,GELU] [--json FILE]
        [--folder DIR]

Attention, softmax, layer norm, GELU, embedding and transposes, each as an ONNX model of
its own: time, the bytes that it must move, how near it comes to the bandwidth of the
cache that they fit in (and, with products in it, to the peak), and the same in ONNX
Runtime, OpenVINO and PyTorch.  Shares are of bert-base's time in nanoloom's own steps;
`fused`: there is no step of its own.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from benchmarks.arguments import add_race, parser_of
from benchmarks.models import seeded_inputs
from benchmarks.part_models import TINY, Part, Sizes, make_parts
from benchmarks.show import Progress, print_sheet
from benchmarks.systems import Measured, Task, absences, job_of, measure
from benchmarks.whole_models import model_file
from nanoloom.target.host import host
from nanoloom_papers.reproduce.contenders import NANOLOOM, Company
from nanoloom_papers.reproduce.roofline import Limits, limits
from nanoloom_papers.reproduce.tables import NAMES, SHORT, Sheet
from nanoloom_papers.reproduce.timing import QUICK, Pace

PEERS = ("pytorch", "openvino", "onnxruntime")
CLOSE = 1e-5  # of the largest number: f32 with a few roundings
LISTED = 12  # groups of bert-base's steps
Steps = Sequence[tuple[str, int]]


@dataclass(frozen=True)
class Row:
    """A part measured.  share: of bert-base, None without a step of its own."""

    part: Part
    measured: Measured
    limits: Limits
    share: float | None
    shared: bool  # whether bert-base was measured

    @property
    def level(self) -> str:
        return self.limits.bandwidth(self.part.bytes)[0]

    @property
    def limit(self) -> float:
        """The seconds that moving the bytes, or the products, take at least."""
        return self.limits.seconds("f32", self.part.flops, self.part.bytes)

    def to_dict(self) -> dict[str, object]:
        return {
            "part": self.part.name,
            "bytes": self.part.bytes,
            "flops": self.part.flops,
            "level": self.level,
            "limit_seconds": self.limit,
            "share_of_bert_base": self.share,
            **self.measured.to_dict(),
        }


def task_of(part: Part, folder: Path) -> Task:
    path = folder / "part.onnx"
    onnx.save(part.model(), path)
    perm = next((a.ints for a in part.nodes[0].attribute if a.name == "perm"), ())
    return Task(
        part.name,
        path,
        part.inputs,
        functions={"pytorch": f"benchmarks.part_torch:{part.function}"},
        expected=[part.expected],
        constants=part.constants,
        allowed=CLOSE,
        facts={"order": list(perm)},
    )


def share(part: Part, steps: Steps) -> float | None:
    """The part of all steps' time in those whose names fit."""
    found = [time for name, time in steps if part.pattern and named(part, name)]
    total = sum(time for _, time in steps)
    return sum(found) / total if found else None


def named(part: Part, step: str) -> bool:
    return re.search(part.pattern, step) is not None


def grouped(steps: Steps) -> list[tuple[str, int, int]]:
    """Name with * for numbers, how many, nanoseconds: the longest first."""
    groups: dict[str, list[int]] = {}
    for name, time in steps:
        groups.setdefault(re.sub(r"\d+", "*", name), []).append(time)
    found = [(name, len(times), sum(times)) for name, times in groups.items()]
    return sorted(found, key=lambda group: -group[2])


def sheet(rows: Sequence[Row], threads: int) -> Sheet:
    keys = [k for k in NAMES if any(k in row.measured.times for row in rows)]
    cells: list[tuple[str, ...]] = []
    for row in rows:
        made = row.measured
        times = {k: f"{1e6 * t.median:.1f}" for k, t in made.times.items()}
        own = made.times.get(NANOLOOM.key)
        ratio = "" if made.ratio is None else f"{made.ratio:.2f} {made.best_peer}"
        cells.append(
            (
                row.part.name,
                *(times.get(k, "") for k in keys),
                f"{row.part.bytes / 1e6:.2f}",
                f"{row.part.bytes / own.median / 1e9:.1f}" if own else "",
                row.level,
                f"{100 * row.limit / own.median:.0f}" if own else "",
                ratio,
                share_text(row),
            )
        )
    heads = ("part", *(f">{SHORT.get(k, NAMES[k])} us" for k in keys), ">MB", ">GB/s")
    ends = ("in", ">%limit", ">best peer", ">of bert-base")
    title = f"parts of an encoder at bert-base's sizes, f32, threads: {threads}"
    below = (
        *rates(rows[0].limits),
        "%limit: the time that the bandwidth (or the peak) allows, over nanoloom's",
        "best peer: nanoloom's time over that of the fastest peer",
        *absences(row.measured for row in rows),
    )
    return Sheet(title, (*heads, *ends), tuple(cells), below)


def share_text(row: Row) -> str:
    if row.share is None:
        return "fused" if row.shared else ""
    return f"{100 * row.share:.1f} %"


def rates(found: Limits) -> list[str]:
    peaks, threads = found.peaks, found.threads
    words = [f"L2 {peaks.best('l2', threads) or 0:.0f}", f"L3 {found.level3:.0f}"]
    words.append(f"memory {peaks.best('memory', threads) or 0:.0f}")
    return [f"measured GB/s, reading: {', '.join(words)}"]


def steps_sheet(steps: Steps, threads: int) -> Sheet:
    """Where bert-base's time goes."""
    total = sum(time for _, time in steps)
    cells = tuple(
        (name, str(count), f"{time / 1e6:.2f}", f"{100 * time / total:.1f} %")
        for name, count, time in grouped(steps)[:LISTED]
    )
    title = f"bert-base, {total / 1e6:.1f} ms in steps, threads: {threads}"
    return Sheet(title, ("-step", ">times", ">ms", ">share"), cells)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = parser_of("parts", __doc__)
    add_race(parser, PEERS, "1,2")
    parser.add_argument("--only", default="", help="words in the names of parts")
    parser.add_argument("--no-shares", action="store_true", help="without bert-base")
    parser.add_argument("--folder", type=Path, help="where bert-base.onnx is kept")
    return parser.parse_args(arguments)


def bert_steps(
    given: argparse.Namespace, threads: int, scratch: Path, company: Company
) -> Steps:
    """nanoloom's steps of bert-base; none where they are not wanted."""
    if given.quick or given.no_shares:
        return []
    folder: Path = given.folder or scratch
    folder.mkdir(parents=True, exist_ok=True)
    task = Task(
        "bert-base", model_file("bert-base", folder), seeded_inputs("bert-base")
    )
    job = job_of(task, threads, scratch, host(), scratch / "cache")
    remote = company.open(NANOLOOM.key, job)
    remote.time(1, 1)
    runs = [remote.steps() for _ in range(given.rounds)]
    times = np.median([[time for _, time in run] for run in runs], axis=0)
    return [(name, int(t)) for (name, _), t in zip(runs[0], times, strict=True)]


def chosen(given: argparse.Namespace) -> list[Part]:
    """The parts whose names have one of the words."""
    parts = make_parts(TINY if given.quick else Sizes())
    words = [word for word in given.only.split(",") if word]
    return [p for p in parts if not words or any(w in p.name for w in words)]


def run(given: argparse.Namespace, threads: int, progress: Progress) -> list[Row]:
    """Measure every part; the table of bert-base's steps is printed on the way."""
    pace = QUICK if given.quick else Pace(rounds=given.rounds)
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory(prefix="nanoloom-") as place,
        Company(tuple(given.against.split(",")), Path(place)) as company,
    ):
        scratch = Path(place)
        progress.say("bert-base")
        steps = bert_steps(given, threads, scratch, company)
        if steps:
            print_sheet(steps_sheet(steps, threads))
        for part in chosen(given):
            progress.say(f"{part.name}, threads: {threads}")
            found = limits(host(), threads)
            task = task_of(part, scratch)
            job = job_of(task, threads, scratch, host(), scratch / "cache")
            made = measure(task, job, company, pace)
            rows.append(Row(part, made, found, share(part, steps), bool(steps)))
            progress.advance(f"{part.name}, threads: {threads}")
    return rows


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    counts = [int(word) for word in given.threads.split(",")]
    every: list[Row] = []
    with Progress(len(counts) * len(chosen(given))) as progress:
        for threads in counts:
            rows = run(given, threads, progress)
            if rows:
                print_sheet(sheet(rows, threads))
            every += rows
    if given.json:
        given.json.write_text(json.dumps([r.to_dict() for r in every], indent=1))


if __name__ == "__main__":
    main()
