"""Few rows of a large result for each task, which writes them from end to end.

    for task (a tile of rows):
        for panel of columns: result[tile, panel] = left[tile] * right[panel]

A core asks for the lines that are written next by itself, of so many rows at a time as
it follows; a column of a large result is a line in every page, each waited for.  The
right operand stays in the second-level cache.
Measured on AVX-512, 256 x 3136 results of sums over 64: 0.6 of the time of all rows
where other work comes in between, with one to three tiles alike; for the same result
again and again 0.95 to 1.25 of it, as its memory happens to lie.
"""

from __future__ import annotations

from math import prod

from nanoloom.nest.contraction import Contraction, bits
from nanoloom.nest.granularity import FEWEST_TASKS
from nanoloom.nest.statement import Statement
from nanoloom.schedule.language import ALL, Directive, Nanokernel, Parallel, Tile
from nanoloom.target.facts import Target


def in_rows(
    root: Statement,
    last: Statement,
    shape: Contraction,
    row: int,
    nanokernel: Nanokernel,
    columns: int,
    target: Target,
) -> tuple[Directive, ...] | None:
    """The loops; None for what is small, or has rows of less than a page.

    row: the dimension that tiles have rows of.  columns: of a tile.
    """
    rows, block = shape.extents[row], nanokernel.rows
    width = shape.extents[shape.column]
    depth = prod(shape.extents[d] for d in shape.reduced)
    size = bits(root.writes[0].element) // 8
    room = target.caches.resident
    far = prod(shape.extents[d] for d in shape.result) * size >= room
    near = depth * width * bits(root.reads[shape.right].element) // 8 <= room
    alone = min(shape.extents) < 0 or rows < 2 * FEWEST_TASKS * block
    if alone or not far or not near or width * size < target.caches.page:
        return None

    def sizes(wanted: dict[int, int]) -> tuple[int, ...]:
        return shape.sizes(wanted, own=root == last)

    others = {d: 1 for d in shape.result if d != shape.column} | {row: block}
    return (
        Parallel(last.name, sizes(others), ALL),
        Tile(last.name, sizes({shape.column: columns}), ALL),
        Tile(last.name, sizes({row: nanokernel.rows}), ALL),
        nanokernel,
    )
