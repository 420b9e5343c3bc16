"""Tasks whose tiles of rows go through several panels, one after the other.

    for panels, block of rows (a task): for tile of rows: for panel: tile

What a tile is made of in front, its rows in a wider type, is made once for all of them.
Panels come from the second-level cache as fast as they are multiplied: two vectors for
eight multiply-adds of 64 numbers, measured.
"""

from __future__ import annotations

from math import prod

from nanoloom.nest.contraction import Contraction, bits
from nanoloom.nest.granularity import FEWEST_TASKS
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.language import ALL, Directive, Nanokernel, Parallel, Tile
from nanoloom.schedule.library.task_order import slowest_axis
from nanoloom.target.facts import Target


def rows_by_panels(
    nest: LoopNest,
    root: Statement,
    last: Statement,
    shape: Contraction,
    nanokernel: Nanokernel,
    sizes: tuple[tuple[int, ...], tuple[int, ...]],
    target: Target,
) -> tuple[Directive, ...]:
    """Tasks of all panels that stay in the second-level cache, of a block of rows.

    sizes: of tasks of one panel, and of the register tile.
    """
    outer, inner = sizes
    axes = list(range(len(outer)) if root == last else shape.result)
    own = dict(zip(axes, outer, strict=True))
    depth, width = prod(shape.extents[d] for d in shape.reduced), own[shape.column]
    most = max(1, target.caches.l2 // (depth * width * bits("s16") // 8))
    own[shape.column] = min(-(-shape.extents[shape.column] // width), most) * width
    for d, tile in zip(axes, inner, strict=True):
        if tile:  # of rows: panels are as fast for few of them
            others = prod(blocks(shape, own, e) for e in axes if e != d)
            parts = -(-2 * FEWEST_TASKS // others)
            block = -(-shape.extents[d] // (parts * tile)) * tile
            own[d] = min(own[d] or block, block)
    columns = tuple(width if d == shape.column else 0 for d in axes)
    first = slowest_axis(nest, root, shape, own, target)
    slowest = None if first is None else axes.index(first)
    return (
        Parallel(last.name, tuple(own.values()), ALL, slowest),
        *([Tile(last.name, inner, ALL)] if any(inner) else []),
        Tile(last.name, columns, ALL),
        nanokernel,
    )


def blocks(shape: Contraction, sizes: dict[int, int], dim: int) -> int:
    """How many tasks there are along a dimension."""
    return -(-shape.extents[dim] // sizes[dim]) if sizes[dim] else 1
