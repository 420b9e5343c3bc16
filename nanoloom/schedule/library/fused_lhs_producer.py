"""What is made by points or rows in front of a product (nest/lhs_producer.py): its
words.
"""

from __future__ import annotations

from nanoloom.nest.contraction import Contraction
from nanoloom.nest.extent import Lanes
from nanoloom.nest.lhs_producer import max_rows
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.language import ComputeAt, Directive, Nanokernel, StoreAt, Tile
from nanoloom.schedule.library.finish_at_tile import points
from nanoloom.schedule.library.row_block import row_block
from nanoloom.schedule.library.vectors import lanes_of, vectors
from nanoloom.target.facts import Target

Sizes = tuple[int, ...]


def stored(nest: LoopNest, root: Statement) -> tuple[StoreAt, ...]:
    """What a product reads stays where a task makes it, for all of its tiles."""
    front = nest.in_front(root.name)
    made = [s for s in nest.producers(root.name) if s in front]
    return tuple(StoreAt(stage.name, "task") for stage in made)


def is_made(nest: LoopNest, root: Statement) -> bool:
    """Whether the kernel's plan has something in front of a product."""
    return any(fusion.consumer == root.name for fusion in nest.plan)


def blocks(
    shape: Contraction,
    plan: Nanokernel,
    sizes: tuple[Sizes, Sizes],
    target: Target,
) -> tuple[Sizes, Sizes]:
    """Sizes of tasks that have all columns of a block of rows, and of their tiles.

    sizes: without what is in front.  A task has some whole rows of an image, if it is
    one.  One block is one task, so that what is in front is still made in a loop.
    """
    outer, inner = sizes
    *high, row = [d for d in shape.rows if shape.extents[d] > 1]
    most, wide = max_rows(shape, target.caches), shape.extents[row]
    block = row_block(wide, plan.rows, max(plan.rows, most))
    made, tile = {row: block, shape.column: 0}, {row: plan.rows}
    if high and block >= wide:
        made[high[-1]] = row_block(shape.extents[high[-1]], 1, max(1, most // wide))
        tile[high[-1]] = 1
    dims = range(len(outer)) if len(outer) == len(shape.extents) else shape.result
    return (
        tuple(made.get(d, size) for d, size in zip(dims, outer, strict=True)),
        tuple(tile.get(d, size) for d, size in zip(dims, inner, strict=True)),
    )


def row_tile(nest: LoopNest, last: Statement) -> tuple[Directive, ...]:
    """A row of what is in front at a time, with the sums of it: it stays in the
    first-level cache."""
    rows = tuple(1 for _ in last.axes[:-1])
    own = tuple(stage.name for stage in reversed(nest.upstream(last.name)))
    return (Tile(last.name, (*rows, 0), own),)


def front_vectors(
    nest: LoopNest, root: Statement, target: Target
) -> tuple[Directive, ...]:
    """Vectors of what stands in front of a product and behind it.

    What is in front goes from registers to registers, but for its functions, which have
    numbers enough of their own in registers.  A row at a time: memory brings one that
    goes on faster than several side by side, measured.
    """
    front = [s for s in nest.in_front(root.name) if s.inside is None]
    others = [s for s in nest.stages if s != root and s not in front]
    if any(stage.is_reduction for stage in front):
        return (*row_tile(nest, front[-1]), *vectors([*front, *others], target))
    if not front or any(stage.has_functions for stage in front):
        return vectors([*front, *others], target)
    *before, last = front
    lanes = Lanes(lanes_of(last, target))
    inside = (ComputeAt(s.name, last.name, last.names[-1]) for s in reversed(before))
    return (
        *points(last, lanes, {}),
        *inside,
        *(word for stage in before for word in points(stage, lanes, {})),
        *vectors(others, target),
    )
