"""Section VI-C: time of compilation and of the two passes in it, and memory.

Of the layout pass, and of the reduction detection over all loops once: the affine path
asks several times.  The stages' seconds are added up over kernels, as if one worker
made them all; weights are turned when they are written, which is not in it.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from nanoloom.cache import Cache
from nanoloom.compile_program import compile
from nanoloom.compiler import Report, compile_kernels, optimized, partition_model
from nanoloom.errors import Error
from nanoloom.frontend.onnx import load
from nanoloom.kernels.program import Program
from nanoloom.options import CompileOptions, Strategy
from nanoloom.target.facts import Target
from nanoloom.workers.batch import Batch
from nanoloom.workers.pool import pool
from nanoloom_papers.affine.k_contiguous_rhs import make_k_contiguous
from nanoloom_papers.affine.reduction_jobs import TimeReductions
from nanoloom_papers.affine.strategies import strategy_named
from nanoloom_papers.reproduce.oml_case import Case
from nanoloom_papers.reproduce.oml_results import (
    COSTS,
    MEMORY,
    OURS,
    SECONDS,
    SHARE,
    Result,
)

RUNS = 50  # of one process: long enough to be looked at
POLL = 0.001  # seconds
BEGUN = 100  # KiB: a process that has fewer has not come to its own code yet


def compilation(
    case: Case, targets: Mapping[str, Target], strategies: Mapping[str, Strategy | None]
) -> Iterator[Result]:
    """Seconds of all stages by each strategy, nothing cached, and the passes' share."""
    layer = case.layer
    for machine, target in targets.items():
        for name, strategy in strategies.items():
            options, report = CompileOptions(target, strategy=strategy), Report()
            program = partition_model(load(case.model), options, report)
            compile_kernels(program, options, Cache.temporary(), report)
            whole = sum(report.seconds.values())
            told = {SECONDS.format(machine): whole}
            if name == OURS:
                passes = layout_seconds(case, options) + detection_seconds(program)
                told[SHARE.format(machine)] = passes / whole
            for quantity, value in told.items():
                yield Result(COSTS, layer.name, layer.size, name, quantity, value)


def layout_seconds(case: Case, options: CompileOptions) -> float:
    """Of laying right operands along the sum, in a graph that is as before."""
    model = load(case.model)
    before = CompileOptions(options.target, strategy=strategy_named("oml"))
    graph = optimized(model, before).graph
    start = time.perf_counter()
    make_k_contiguous(graph, model.opset_imports.get("", 0))
    return time.perf_counter() - start


def detection_seconds(program: Program) -> float:
    """Of the reduction maps of all kernels."""
    with Batch[float](pool(), 1, lambda _: None) as batch:
        for kernel in program.kernels.values():
            batch.ask(kernel.name, TimeReductions(kernel.text))
        return sum(batch.answers().values())


def memory(
    case: Case,
    target: Target,
    folder: Path,
    strategies: Mapping[str, Strategy | None],
    say: Callable[[str], None],
) -> Iterator[Result]:
    """Peaks of processes that do nothing but run the layer, one after the other."""
    given, layer = folder / "x.npy", case.layer
    np.save(given, case.feeds["x"])
    for name, strategy in strategies.items():
        say(f"{layer.name}: memory of {name}")
        options = CompileOptions(target, strategy=strategy)
        value, note = None, ""
        try:
            program = compile(case.model, threads=1, options=options)
            path = program.save(folder / "peak", form="executable")
            value = peak(path, given)
            note = "" if value else "this system does not say what a process takes"
        except Error as error:
            note = str(error)
        yield Result(COSTS, layer.name, layer.size, name, MEMORY, value, note)


def peak(program: Path, given: Path) -> int | None:
    """KiB that a process had at most, as Linux counts; None where it does not.

    Raises:
        Error: the program fails.
    """
    words = [str(program), str(given), "--threads=1", f"--repeat={RUNS}"]
    found: int | None = None
    quiet = subprocess.DEVNULL
    with subprocess.Popen(words, stdout=quiet, stderr=quiet, cwd=given.parent) as run:
        while run.poll() is None:
            found = high_water(run.pid, program.name) or found
            time.sleep(POLL)
    if run.returncode:
        raise Error(f"{program.name} failed with {run.returncode}")
    return found


def high_water(pid: int, name: str) -> int | None:
    """VmHWM of a process that is this program already."""
    try:
        text = Path(f"/proc/{pid}/status").read_text("ascii", "replace")
    except OSError:
        return None
    told = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    if told.get("Name", "").strip() != name or "VmHWM" not in told:
        return None
    most = int(told["VmHWM"].split()[0])
    return most if most > BEGUN else None
