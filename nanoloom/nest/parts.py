"""Windows that read others' windows, as parts of one kernel.

    for block of y (a task):
        t = sums of x, of the points that the block reads
        y = sums of windows of t

Legality is the affine footprint of a window; what is computed again at the edges of
blocks is weighed by cost/profit.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from nanoloom.nest.footprint import Sizes
from nanoloom.nest.granularity import TASK_ELEMENTS
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.nest.steps import number
from nanoloom.nest.task_sizes import PADDED, numbers, task_sizes


def has_windows(stage: Statement) -> bool:
    """Whether a stage reduces windows, whose part of a block is known by its size."""
    if not stage.is_reduction or stage.is_contraction or len(stage.writes) != 1:
        return False
    indices = stage.reads[0].indices
    terms = [term for index in indices for term in index.terms]
    names = [axis for axis, _ in terms]
    linear = not any(index.other for index in indices)
    forward = all(factor > 0 for _, factor in terms) and len(names) == len({*names})
    parallel = tuple(axis.name for axis in stage.axes if not axis.is_reduction)
    moves = any(len(index.terms) > 1 for index in indices)
    known = all(isinstance(axis.extent, int) for axis in stage.axes)
    return linear and forward and moves and known and stage.writes[0].plain == parallel


def parts_of(nest: LoopNest) -> Iterator[LoopNest]:
    """A kernel's parts, each as a kernel of its own: up to where its plan joined
    them."""
    taken: list[Statement] = []
    for fusion in nest.plan:
        end = nest.stage(fusion.producer)
        stages = [s for s in (*nest.upstream(end.name), end) if s not in taken]
        yield nest.of_stages(stages, (end.writes[0].buffer,))
        taken += stages
    yield nest.of_stages([s for s in nest.stages if s not in taken], nest.results)


def block_sizes(nest: LoopNest) -> tuple[int, ...]:
    """Points of the last stage's axes that a task makes, 0 for all; as many as the part
    that makes most has of a task's.  The innermost axis is whole."""
    last = nest.last
    assert last is not None, "asked of what has a last stage"
    outer = list(range(last.leading_parallel()))[:-1]
    most = max(made(stage) for stage in nest.stages if stage.reads)
    wanted = max(1, PADDED * TASK_ELEMENTS * made(last) // most)
    return task_sizes(numbers(last), outer, {}, 1, wanted)


def made(stage: Statement) -> int:
    """Points of a stage's results."""
    return prod(number(axis.extent) for axis in stage.axes if not axis.is_reduction)


def blocks(nest: LoopNest) -> Sizes:
    """Those of the same axes that are cut, by name; {} where one task makes all."""
    assert nest.last is not None, "asked of what has a last stage"
    pairs = zip(nest.last.axes, block_sizes(nest), strict=True)
    return {axis.name: n for axis, n in pairs if 0 < n < number(axis.extent)}
