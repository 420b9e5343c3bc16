"""Tasks whose tiles of rows go through several panels, one after the other.

    for panels, block of rows (a task): for tile of rows: for panel: tile

What a tile is made of in front, its rows in a wider type, is made once for all of them.
Panels come from the second-level cache as fast as they are multiplied: two vectors for
eight multiply-adds of 64 numbers, measured.
"""

from __future__ import annotations

from math import prod

from nanoloom.nest.contraction import Contraction, bits
from nanoloom.nest.granularity import FEWEST_TASKS, TASK_ELEMENTS
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.language import ALL, Directive, Nanokernel, Parallel, Tile
from nanoloom.schedule.library.task_order import slowest_axis
from nanoloom.target.facts import Target

WIDENED = "s16"  # what panels hold


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

    sizes: of tasks of one panel, and of the register tile.  Half of that cache has
    panels, what rows read and write the other: 14 x 14 results of 2304 products and 256
    columns took 1.2 times as long with panels that fill it.
    """
    outer, inner = sizes
    axes = list(range(len(outer)) if root == last else shape.result)
    own = dict(zip(axes, outer, strict=True))
    depth, width = prod(shape.extents[d] for d in shape.reduced), own[shape.column]
    panels = -(-shape.extents[shape.column] // width)
    of_panel = depth * width * bits(WIDENED) // 8
    own[shape.column] = panels_at_once(panels, of_panel, target) * width
    for d, tile in zip(axes, inner, strict=True):
        if tile:  # of rows: panels are as fast for few of them
            others = prod(blocks(shape, own, e) for e in axes if e != d)
            parts = -(-2 * FEWEST_TASKS // others)
            most = -(-shape.extents[d] // (parts * tile)) * tile
            most = min(own[d] or most, most)
            work = depth * own[shape.column]
            own[d] = whole_block(shape.extents[d], tile, most, work)
    columns = tuple(width if d == shape.column else 0 for d in axes)
    first = slowest_axis(nest, root, shape, own, target, WIDENED)
    slowest = None if first is None else axes.index(first)
    return (
        Parallel(last.name, tuple(own.values()), ALL, slowest),
        *([Tile(last.name, inner, ALL)] if any(inner) else []),
        Tile(last.name, columns, ALL),
        nanokernel,
    )


def panels_at_once(panels: int, of_panel: int, target: Target) -> int:
    """How many panels a task has, of so many bytes each.

    All, if they stay in the cache from one task to the next.  Else tasks share columns
    rather than rows, so that a panel comes from memory for many rows: as many panels as
    there are to be tasks at least, as each row is widened for them, and as many in each
    task if that can be.
    """
    fit = max(1, target.caches.resident // of_panel)
    if panels <= fit:
        return panels
    tasks = 2 * FEWEST_TASKS
    most = min(fit, max(tasks, -(-panels // tasks)))
    return next((n for n in range(most, most // 2, -1) if panels % n == 0), most)


def whole_block(extent: int, tile: int, most: int, work: int) -> int:
    """Rows of a task, so that no tile of any task asks which of its rows there are.

    work: multiply-adds of a row.  As many as can be, where there are none of whole
    tiles that divide all rows and take some ten microseconds.
    """
    sizes = range(most - most % tile, 0, -tile)
    whole = (rows for rows in sizes if extent % rows == 0)
    block = next(whole, most)
    return block if block * work >= 64 * TASK_ELEMENTS else most


def blocks(shape: Contraction, sizes: dict[int, int], dim: int) -> int:
    """How many tasks there are along a dimension."""
    return -(-shape.extents[dim] // sizes[dim]) if sizes[dim] else 1
