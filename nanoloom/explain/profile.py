"""Where a program's time goes: its steps, timed in the order in which they run.

A step is a kernel's call, or a phase of it.  The compiled code itself reads the time
between steps (runtime/clock.c).  What it computes and moves is counted from the loops
of its kernel: each operation at each point, each number read or written once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nanoloom.explain.timed_steps import Timed, timed
from nanoloom.fork_lock import wait_for_compiler
from nanoloom.runtime.slices import BEGIN, END, STEP

if TYPE_CHECKING:
    from nanoloom.explain.explainable import Explainable
    from nanoloom.explain.layer_work import LayerWork
    from nanoloom.target.peaks import Peaks


@dataclass(frozen=True)
class Layer:
    """The steps that are named for one node of the model, over all runs.

    steps: their numbers.  seconds: the median of their sum; low, high: its tenth and
    ninetieth percentile.  operations, bytes: what their kernels compute and touch, 0
    where sizes or data decide.  least: seconds at the rates that were measured of all
    threads, None where they are not known.  nodes: of the model, that are in it.
    waiting: of the threads' time, the part in which they had no task; None of one.
    """

    name: str
    steps: tuple[int, ...]
    seconds: float
    low: float
    high: float
    operations: int = 0
    bytes: int = 0
    least: float | None = None
    nodes: tuple[str, ...] = ()
    waiting: float | None = None

    @property
    def share(self) -> float | None:
        """Of the measured roof."""
        known = self.least is not None and self.seconds > 0
        return self.least / self.seconds if known and self.least is not None else None

    @property
    def rate(self) -> float:
        """Operations a second."""
        return self.operations / self.seconds if self.seconds else 0.0

    @property
    def bandwidth(self) -> float:
        """Bytes a second."""
        return self.bytes / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Profile:
    """layers: in the order of their first steps.  names: of the layer of each step.
    whole: median seconds of a run, timed from outside.

    runs: nanoseconds of each step (columns) in each run (rows).  begins: of the runs,
    seconds from the first one.  outputs: of each node of the model, the values' names.
    slices: of the threads, as `Timed` has them.
    """

    layers: tuple[Layer, ...]
    names: tuple[str, ...]
    whole: float
    threads: int
    runs: np.ndarray
    begins: tuple[float, ...]
    outputs: Mapping[str, tuple[str, ...]]
    slices: tuple[np.ndarray, ...] = ()

    @property
    def inside(self) -> float:
        """Seconds of a run that its steps take."""
        return float(np.median(self.runs.sum(axis=1))) / 1e9


def profile(
    program: Explainable,
    inputs: Mapping[str, Any],
    runs: int | None = None,
    peaks: Peaks | None = None,
) -> Profile:
    """Run a program again and again, and time its steps.

    runs: by default as many as fit into two seconds, five at least.  peaks: of this
    machine, None where no share of them is wanted.  Raises what a call raises.
    """
    with wait_for_compiler():
        from nanoloom.explain.layer_work import LayerWork, model_work

    arrays = program.checked(inputs)
    variant = program.variant(arrays)
    names = variant.library.steps
    measured = timed(variant, arrays, runs)
    table = measured.nanoseconds
    work = model_work(program, arrays, peaks)
    busy = busy_of(measured)
    layers: list[Layer] = []
    for name in dict.fromkeys(names):
        own = layer_of(name, names, table / 1e9, work.layers.get(name, LayerWork()))
        part = waiting(table, busy, program.threads, own.steps)
        layers.append(replace(own, waiting=part))
    own = tuple(layers), tuple(names), measured.whole
    began = measured.begins, work.outputs, measured.slices
    return Profile(*own, program.threads, table, *began)


def busy_of(measured: Timed) -> np.ndarray:
    """Nanoseconds that threads had tasks of each step (columns), in each run whose
    threads were noted (rows)."""
    busy = np.zeros((len(measured.slices), measured.nanoseconds.shape[1]))
    for row, slices in zip(busy, measured.slices, strict=True):
        np.add.at(row, slices[:, STEP], slices[:, END] - slices[:, BEGIN])
    return busy


def waiting(
    times: np.ndarray, busy: np.ndarray, threads: int, steps: Sequence[int]
) -> float | None:
    """Of the threads' time in these steps the part without a task, the runs' median.

    times, busy: nanoseconds of each step (columns) in each run (rows).
    """
    whole = threads * times[: len(busy), steps].sum(axis=1)
    if not whole.all() or not len(whole):
        return None
    free = 1 - busy[:, steps].sum(axis=1) / whole
    return max(0.0, float(np.median(free)))  # steps beside each other overlap


def layer_of(
    name: str, names: Sequence[str], times: np.ndarray, work: LayerWork
) -> Layer:
    """A layer's times; times: seconds of each step in each run."""
    steps = tuple(n for n, each in enumerate(names) if each == name)
    sums = times[:, steps].sum(axis=1)
    low, middle, high = (float(x) for x in np.quantile(sums, [0.1, 0.5, 0.9]))
    own = work.operations, work.bytes, work.least, work.nodes
    return Layer(name, steps, middle, low, high, *own)
