"""Dataflows of a convolution, timed: all in one process of their own, in turns."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import nanoloom
from nanoloom.api.program import Program
from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.options import CompileOptions
from nanoloom.schedule.dataflow.dataflow import Dataflow, parse
from nanoloom.target.cached_host import from_dict, to_dict
from nanoloom.target.facts import Target
from nanoloom_papers.reproduce.array_files import Array
from nanoloom_papers.reproduce.contenders import Company, Peer
from nanoloom_papers.reproduce.expected_results import Expected
from nanoloom_papers.reproduce.flow_layers import FlowLayer, draw, right, written
from nanoloom_papers.reproduce.jobs import Job, Ready

WORKER = Peer(
    "dataflows", "dataflows", (), "nanoloom_papers.reproduce.flow_search:open_flows"
)
CONVOLUTIONS = "contraction_*"
ROOM = 1e-4  # of the largest number: what other orders of a sum may differ by
ROUNDS, FEWEST, LONGEST = 7, 2, 5.0  # turns of each, and seconds of all of them
COMPILED = 2  # dataflows at once: a kernel is compiled by one core
LONG = 20e6  # nanoseconds of a call that needs none before it


@dataclass(frozen=True)
class Ranked:
    """A dataflow and the median of its times; None, and why, if it has none."""

    flow: Dataflow
    seconds: float | None
    absent: str = ""


def search(
    subject: FlowLayer | Path,
    flows: Sequence[Dataflow],
    target: Target,
    *,
    kernels: str = CONVOLUTIONS,
    rounds: int = ROUNDS,
    longest: float = LONGEST,
    threads: int = 1,
    company: Company | None = None,
) -> tuple[Ranked, ...]:
    """Dataflows by their measured times, the fastest first.

    subject: a model's file, ONNX or MLIR text, with shapes that are known; kernels: a
    pattern of those in it that the dataflows are for.  rounds: turns of each, two at
    least, fewer where they take more than `longest` seconds.  company: whose process
    takes one search after the other, as `searchers` gives it.  A dataflow that is
    refused or gives other numbers is last, and says why.
    Raises Error if the process ends.
    """
    facts: dict[str, Any] = {
        "flows": [str(flow) for flow in flows],
        "target": to_dict(target),
        "kernels": kernels,
    }
    model = str(subject) if isinstance(subject, Path) else ""
    if isinstance(subject, FlowLayer):
        facts["layer"] = astuple(subject)
    times: dict[str, list[int]] = {}
    with tempfile.TemporaryDirectory(prefix="nanoloom-") as folder, ExitStack() as own:
        facts["cache"] = str(Path(folder) / "cache")
        each = company or own.enter_context(searchers(Path(folder)))
        remote = each.open(WORKER.key, Job(threads, model, facts=facts))
        absent: dict[str, str] = remote.facts["absent"]
        begin = time.monotonic()
        for number in range(rounds):
            if number >= FEWEST and time.monotonic() - begin > longest:
                break
            for name, nanoseconds in remote.steps():
                times.setdefault(name, []).append(nanoseconds)
    found = [
        Ranked(flow, statistics.median(times[str(flow)]) / 1e9)
        if str(flow) in times
        else Ranked(flow, None, absent[str(flow)])
        for flow in flows
    ]
    return tuple(sorted(found, key=lambda x: (x.seconds is None, x.seconds or 0.0)))


def searchers(folder: Path) -> Company:
    """Processes for searches, to be used in a `with`.  folder: for what they say."""
    return Company((WORKER.key,), folder, known=(WORKER,))


# ---- in the process ------------------------------------------------------------------


def open_flows(job: Job) -> Ready:
    """A program for each dataflow; who is wrong or refused is named, and not timed."""
    numbers, wanted = subject_of(job)
    runs: dict[str, Callable[[], object]] = {}
    absent: dict[str, str] = {}

    def made(text: str) -> Program | Error:
        try:
            return program_of(job, (job.facts["kernels"], parse(text)))
        except Error as error:
            return error

    with ThreadPoolExecutor(COMPILED) as pool:
        programs = list(pool.map(made, job.facts["flows"]))
    for text, program in zip(job.facts["flows"], programs, strict=True):
        try:
            if isinstance(program, Error):
                raise program
            runs[text] = checked(program, numbers, wanted)
        except Error as error:
            absent[text] = str(error)
    return Ready(
        f"nanoloom {nanoloom.__version__}",
        lambda: [run() for run in runs.values()],
        list,
        {"absent": absent},
        lambda: [(text, nanoseconds(run)) for text, run in runs.items()],
    )


def subject_of(job: Job) -> tuple[dict[str, Array], Expected]:
    """Random inputs, and what is right: in float64, or as without a dataflow."""
    if "layer" in job.facts:
        layer = FlowLayer(*job.facts["layer"])
        numbers = draw(layer)
        return numbers, right(layer, numbers)
    program, random = program_of(job), np.random.default_rng(0)
    numbers = {
        x.name: random.integers(-8, 9, tuple(map(int, x.shape))).astype(x.dtype)
        for x in program.inputs
    }
    value = next(iter(program(numbers).values())).astype(np.float64)
    return numbers, Expected(value, ROOM * abs(value).max(initial=0) + 0 * value)


def program_of(job: Job, *schedules: tuple[str, Dataflow]) -> Program:
    target = from_dict(dict(job.facts["target"]))
    options = CompileOptions(target, schedules=schedules, exact_conv=True)
    cache = Cache(Path(job.facts["cache"]))
    made = job.model or written(FlowLayer(*job.facts["layer"]))
    return nanoloom.compile(made, threads=job.threads, options=options, cache=cache)


def checked(
    program: Program, numbers: dict[str, Array], wanted: Expected
) -> Callable[[], object]:
    """A run into the same outputs each time.  Raises Error for a wrong result."""
    variant = program.variant(numbers)
    inputs = [numbers[x.name] for x in variant.library.inputs]
    outputs = variant.library.new_outputs()

    def run() -> None:
        variant.instance.run(inputs, outputs)

    run()
    complaint = wanted.complaint(outputs[0])
    if complaint:
        raise Error(complaint)
    return run


def nanoseconds(run: Callable[[], object]) -> int:
    """Of a call; a short one is behind one that does not count."""
    taken = 0
    for _ in range(2):
        begin = time.perf_counter_ns()
        run()
        taken = time.perf_counter_ns() - begin
        if taken > LONG:
            break
    return taken
