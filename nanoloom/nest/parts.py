"""What reads the results of reductions, as parts of one kernel.

    for block of y (a task):
        t = sums of x, of the points that the block reads
        y = sums of windows of t, or of its rows

Legality is the affine footprint of what is read; what is computed again at the edges of
blocks is weighed by cost/profit.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod

from nanoloom.nest.contraction import bits, roles
from nanoloom.nest.footprint import Sizes
from nanoloom.nest.granularity import BLOCK_ROWS, FEWEST_TASKS, TASK_ELEMENTS
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.nest.steps import (
    moved_axes,
    number,
    read_inside,
    steps_around,
    whole,
)
from nanoloom.nest.task_sizes import PADDED, numbers, task_sizes
from nanoloom.target.facts import Target


def is_linear(stage: Statement) -> bool:
    """Whether a stage reduces what lies at sums of axes, each of them once: what a
    block of it reads is known by its size."""
    if not stage.is_reduction or len(stage.writes) != 1:
        return False
    indices = stage.reads[0].indices
    terms = [term for index in indices for term in index.terms]
    names = [axis for axis, _ in terms]
    linear = not any(index.other for index in indices)
    forward = all(factor > 0 for _, factor in terms) and len(names) == len({*names})
    parallel = tuple(axis.name for axis in stage.axes if not axis.is_reduction)
    known = all(isinstance(axis.extent, int) for axis in stage.axes)
    return linear and forward and known and stage.writes[0].plain == parallel


def has_windows(stage: Statement) -> bool:
    """Whether a stage reduces windows."""
    if stage.is_contraction or not is_linear(stage):
        return False
    return any(len(x.terms) > 1 for x in stage.reads[0].indices)


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


def rows_of(stage: Statement) -> int:
    """Leading axes of which a task may have a part: not those of a sum's numbers, or of
    vectors."""
    leading = stage.leading_parallel()
    by_rows = stage.is_reduction and not stage.is_contraction
    return leading if by_rows and not has_windows(stage) else leading - 1


def shared_rows(nest: LoopNest) -> int:
    """Leading axes of which a task may have a part of each stage."""
    return max(0, min(rows_of(stage) for stage in nest.stages if stage.reads))


def task_axes(nest: LoopNest) -> list[int]:
    """Those of the last stage that tasks are blocks of: the columns of a product are in
    panels, and each task has all."""
    last = nest.last
    assert last is not None, "asked of what has a last stage"
    shapes = ((product, roles(product)) for product in nest.products)
    panels = [(x, x.names[shape.column]) for x, shape in shapes if shape is not None]

    def cuts_panels(name: str) -> bool:
        axes = frozenset([name])
        return any(y in moved_axes(nest, x, last.name, axes) for x, y in panels)

    return [d for d in range(shared_rows(nest)) if not cuts_panels(last.names[d])]


def in_block(
    nest: LoopNest, stages: Iterable[Statement], sizes: Sizes
) -> tuple[Statement, ...]:
    """Stages of the points that a block of the last one reads.

    sizes: of the block, along axes of the last stage; the others are whole.
    """
    assert nest.last is not None, "asked of what has a last stage"
    last, block = nest.last, whole(nest.last) | sizes

    def of_block(stage: Statement) -> Statement:
        sizes = read_inside(nest, stage, last.name, block)
        axes = (
            a if a.is_reduction else replace(a, extent=sizes[a.name])
            for a in stage.axes
        )
        return replace(stage, axes=tuple(axes))

    return tuple(map(of_block, stages))


def block_sizes(nest: LoopNest) -> tuple[int, ...]:
    """Points of the last stage's axes that a task makes, 0 for all; as many as the part
    that makes most has of a task's.  Rows that others need whole are."""
    last = nest.last
    assert last is not None, "asked of what has a last stage"
    outer = task_axes(nest)
    most = max(made(stage) for stage in nest.stages if stage.reads)
    windows = any(map(has_windows, nest.stages))
    each = made(last) if windows else prod(numbers(last))
    wanted = PADDED * TASK_ELEMENTS * each // most
    wanted = max(1, wanted if windows else min(wanted, each // FEWEST_TASKS))
    return task_sizes(numbers(last), outer, {}, 1, wanted)


def reuses_panels(fused: LoopNest, target: Target) -> bool:
    """Whether the tasks of a nest read their products' right operands no more often
    than a product's own do: enough rows for each panel, or all panels in the
    first-level cache; and there are tasks enough."""
    for product in fused.products:
        shape = roles(product)
        if shape is None:
            continue
        tasks, inside = 1.0, whole(product)
        for step in steps_around(fused, product):
            tasks, inside = tasks * step.times, step.sizes
        rows = prod(number(inside[product.names[d]]) for d in shape.rows)
        right = fused.buffer(product.reads[shape.right].buffer)
        size = prod(map(number, right.shape)) * bits(right.element) // bits("u8")
        most = target.caches.resident if rows >= BLOCK_ROWS else target.caches.l1d
        if tasks < FEWEST_TASKS or size > most:
            return False
    return True


def made(stage: Statement) -> int:
    """Points of a stage's results."""
    return prod(number(axis.extent) for axis in stage.axes if not axis.is_reduction)


def blocks(nest: LoopNest) -> Sizes:
    """Those of the same axes that are cut, by name; {} where one task makes all."""
    assert nest.last is not None, "asked of what has a last stage"
    pairs = zip(nest.last.axes, block_sizes(nest), strict=True)
    return {axis.name: n for axis, n in pairs if 0 < n < number(axis.extent)}
