"""Where a program's time goes: its steps, timed in the order in which they run.

A step is a kernel's call, or a phase of it.  Its time is read from the clock before and
after by the compiled code itself.  What it computes and moves is counted from the loops
of its kernel: each operation at each point, each number read or written once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nanoloom.explain.timed_steps import timed
from nanoloom.explain.work import counted

if TYPE_CHECKING:
    from nanoloom.explain.explainable import Explainable


@dataclass(frozen=True)
class Layer:
    """The steps that are named for one node of the model, over all runs.

    steps: their numbers.  seconds: the median of their sum; low, high: its tenth and
    ninetieth percentile.  operations, bytes: what their kernels compute and touch, 0
    where sizes or data decide.
    """

    name: str
    steps: tuple[int, ...]
    seconds: float
    low: float
    high: float
    operations: int = 0
    bytes: int = 0

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
    seconds from the first one.
    """

    layers: tuple[Layer, ...]
    names: tuple[str, ...]
    whole: float
    threads: int
    runs: np.ndarray
    begins: tuple[float, ...]

    @property
    def inside(self) -> float:
        """Seconds of a run that its steps take."""
        return float(np.median(self.runs.sum(axis=1))) / 1e9


def profile(
    program: Explainable, inputs: Mapping[str, Any], runs: int | None = None
) -> Profile:
    """Run a program again and again, and time its steps.

    runs: by default as many as fit into two seconds, five at least.  Raises what a
    call raises.
    """
    arrays = program.checked(inputs)
    variant = program.variant(arrays)
    names = variant.library.steps
    measured = timed(variant, arrays, runs)
    table = measured.nanoseconds
    work = work_of(program, arrays)
    layers = [
        layer_of(name, names, table / 1e9, work.get(name, (0, 0)))
        for name in dict.fromkeys(names)
    ]
    own = tuple(layers), tuple(names), measured.whole
    return Profile(*own, program.threads, table, measured.begins)


def layer_of(
    name: str, names: Sequence[str], times: np.ndarray, work: tuple[int, int]
) -> Layer:
    """A layer's times; times: seconds of each step in each run."""
    steps = tuple(n for n, each in enumerate(names) if each == name)
    sums = times[:, steps].sum(axis=1)
    low, middle, high = (float(x) for x in np.quantile(sums, [0.1, 0.5, 0.9]))
    return Layer(name, steps, middle, low, high, *work)


def work_of(
    program: Explainable, arrays: Mapping[str, np.ndarray]
) -> dict[str, tuple[int, int]]:
    """Operations and bytes of each layer, for these shapes.

    Empty where the model has no kernels for known shapes alone.
    """
    from nanoloom.compiler import partition_model
    from nanoloom.errors import Error
    from nanoloom.fork_lock import wait_for_compiler

    shapes = {name: array.shape for name, array in arrays.items()}
    try:
        with wait_for_compiler():
            model = program.source.entry(shapes, {})
            made = partition_model(model, program.options, program.report)
    except Error:
        return {}
    found: dict[str, tuple[int, int]] = {}
    for call in made.calls:
        operations, size = counted(made.kernels[call.kernel].nest)
        before = found.get(call.layer, (0, 0))
        found[call.layer] = before[0] + operations, before[1] + size
    return found


def trace(found: Profile, model: str) -> dict[str, Any]:
    """Events as Perfetto and Chrome's tracing read them: a slice for each step."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": model}},
        {
            "ph": "M",
            "name": "thread_name",
            "pid": 1,
            "tid": 1,
            "args": {"name": f"steps, {found.threads} threads"},
        },
    ]
    for number, (began, row) in enumerate(zip(found.begins, found.runs, strict=True)):
        at = began * 1e6
        event = {"ph": "X", "name": f"run {number}", "pid": 1, "tid": 1}
        events.append(event | {"ts": at, "dur": float(row.sum()) / 1e3})
        for step, taken in enumerate(row.tolist()):
            event = {"ph": "X", "name": found.names[step], "pid": 1, "tid": 1}
            said = {"step": step}
            events.append(event | {"ts": at, "dur": taken / 1e3, "args": said})
            at += taken / 1e3
    return {"traceEvents": events, "displayTimeUnit": "ns"}
