"""Tasks that keep what they have of a flat right operand as a panel.

    for task (rows, a panel's columns):
        for chunk of k but the last: for tile of rows:
            sums[tile] += left[tile, chunk] * right[chunk]
        for tile of rows:
            result[tile] = sums[tile] + left[tile, last] * right[last]

The first tile makes the panel of a chunk (vector/nanokernel/operands/fma_panel.py),
which all others read: many rows share it, and it stays in the second-level cache.
"""

from __future__ import annotations

from math import prod

from nanoloom.nest.contraction import Contraction
from nanoloom.nest.granularity import BLOCK_ROWS, FEWEST_TASKS
from nanoloom.schedule.language import Nanokernel
from nanoloom.schedule.library.k_blocking import KBlocks
from nanoloom.schedule.library.nanokernels import strip
from nanoloom.schedule.library.row_block import row_block
from nanoloom.target.facts import Target


def task_panel(
    shape: Contraction, row: int, nanokernel: Nanokernel, bits: int, target: Target
) -> KBlocks:
    """How much of a product is a task, and of its sum a chunk.

    row: the dimension that tiles have rows of.  bits: of a sum.
    """
    columns = nanokernel.vectors * target.lanes(bits)
    panels = -(-shape.extents[shape.column] // columns)
    results = prod(shape.extents[d] for d in shape.result if d != shape.column)
    fitting = target.caches.panel // (columns * bits // 8)  # of sums, beside a panel
    most = max(BLOCK_ROWS, min(fitting, results * panels // FEWEST_TASKS))
    rows = row_block(shape.extents[row], nanokernel.rows, most)
    step = columns * bits // 8 * prod(shape.extents[d] for d in shape.reduced[:-1])
    depth = max(
        strip(target), min(target.caches.panel, 2 * target.caches.reach) // step
    )
    extent = shape.extents[shape.reduced[-1]]
    return KBlocks(part(extent, depth, strip(target)), rows, 1)


def part(extent: int, most: int, strip: int) -> int:
    """Of equal parts, the last of which may be smaller, in whole strips."""
    if extent <= most:
        return extent
    parts = -(-extent // most)
    return -(-extent // (parts * strip)) * strip
