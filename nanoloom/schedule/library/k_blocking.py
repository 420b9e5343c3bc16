"""Long sums: a block of results for a chunk of k, then for the next chunk.

    for task (rows, columns):
        for chunk of k but the last: for panel of columns: for tile of rows:
            sums[tile, panel] += left[tile, chunk] * panel[chunk]
        for panel of columns: for tile of rows:
            result[tile, panel] = sums[tile, panel] + left[tile, last] * panel[last]

What a block of rows has of a chunk stays in the second-level cache while several panels
go by, and so do the block's sums, in a buffer of their own.  Whole rows would push each
other out: a row of 4096 numbers is four pages of memory, and 128 of them fill the cache
alone; and so would sums in the rows of such a result.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from nanoloom.nest.contraction import Contraction
from nanoloom.nest.granularity import BLOCK_ROWS, FEWEST_TASKS
from nanoloom.nest.statement import Statement
from nanoloom.schedule.language import (
    ALL,
    RESULT,
    Directive,
    Nanokernel,
    Parallel,
    Peel,
    PrivateAccumulator,
    Tile,
)
from nanoloom.schedule.library.row_block import row_block
from nanoloom.target.facts import Target

FEWEST_PANELS = 4  # fewer do not pay for sums that wait; as measured


@dataclass(frozen=True)
class KBlocks:
    """depth: numbers of k at a time.  rows, panels: of a task."""

    depth: int
    rows: int
    panels: int


def k_blocking(
    shape: Contraction, row: int, nanokernel: Nanokernel, bits: int, target: Target
) -> KBlocks | None:
    """How a sum is cut, None to leave it whole.

    row: the dimension that tiles have rows of.  bits: of a number.  Rows of two pages
    are cut, if they fill half of the second-level cache.  A chunk has half a page of
    each: a quarter to a whole one are alike, as measured.
    """
    m, k = shape.extents[row], shape.extents[shape.reduced[-1]]
    size, caches = bits // 8, target.caches
    fits = k * size < 2 * caches.page or min(m, BLOCK_ROWS) * k * size < caches.resident
    if len(shape.reduced) > 1 or fits:
        return None
    rows = row_block(m, nanokernel.rows, BLOCK_ROWS)
    columns = nanokernel.vectors * target.lanes(bits)
    panels = -(-shape.extents[shape.column] // columns)
    fitting = caches.panel // (rows * columns * size)
    others = (shape.extents[d] for d in shape.result if d not in (row, shape.column))
    blocks = -(-m // rows) * prod(others)
    most = min(fitting, 2 * FEWEST_PANELS, panels * blocks // FEWEST_TASKS)
    even = [n for n in range(FEWEST_PANELS, most + 1) if panels % n == 0]
    depth = divisor(k, min(caches.page // 2, caches.resident // BLOCK_ROWS) // size)
    if depth is None or most < FEWEST_PANELS:
        return None
    return KBlocks(depth, rows, max(even, default=most))


def in_k_blocks(
    root: Statement,
    shape: Contraction,
    row: int,
    nanokernel: Nanokernel,
    columns: int,
    chunks: KBlocks,
    last: str,
) -> tuple[Directive, ...]:
    """The loops, outermost first.  last: the stage that writes the result."""
    reduced = shape.reduced[-1]
    product, apart = root.name, last == root.name
    task = dict.fromkeys(shape.result, 1)
    task[row], task[shape.column] = chunks.rows, columns * chunks.panels
    if chunks.rows >= shape.extents[row]:
        task[row] = 0
    extent = shape.extents[reduced]
    before = (-(-extent // chunks.depth) - 1) * chunks.depth
    apart = apart and before > 0
    end = RESULT if apart else last

    def sums(dim: int, size: int) -> Tile:
        return Tile(f"{product}.first", shape.sizes({dim: size}, own=True))

    def results(dim: int, size: int) -> Tile:
        return Tile(end, shape.sizes({dim: size}, own=end == product), ALL)

    several = chunks.panels > 1
    cut = (
        sums(reduced, chunks.depth),
        *([sums(shape.column, columns)] if several else []),
        sums(row, nanokernel.rows),
    )
    return (
        *([PrivateAccumulator(product)] if apart else []),
        *([Peel(product, root.names[reduced], before)] if before else []),
        Parallel(end, shape.sizes(task, own=end == product), ALL),
        *(cut if before else []),
        *([results(shape.column, columns)] if several else []),
        results(row, nanokernel.rows),
        nanokernel,
    )


def may_be_blocked(root: Statement, last: Statement) -> bool:
    """Whether sums can have a place of their own: from a number on, or read behind."""
    return root.name != last.name or root.starts[0] != ""


def divisor(extent: int, wanted: int) -> int | None:
    """The part of an extent next to a size, in multiples of 4; None far from it."""
    parts = [
        extent // n
        for n in range(1, extent // 4)
        if extent % (4 * n) == 0 and wanted <= 2 * extent // n <= 4 * wanted
    ]
    return min(parts, key=lambda part: abs(part - wanted), default=None)
