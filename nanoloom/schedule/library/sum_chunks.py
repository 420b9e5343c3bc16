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

from nanoloom.kernels.contraction import Contraction
from nanoloom.kernels.structure import Op, is_fill
from nanoloom.linalg.pointwise import pointwise
from nanoloom.mlir import arith, ir, tensor
from nanoloom.schedule.language import (
    Directive,
    Loops,
    Nanokernel,
    Parallel,
    Split,
    Tile,
)
from nanoloom.schedule.library.marks import mark
from nanoloom.schedule.library.row_block import row_block
from nanoloom.target.facts import Target

ROWS = 128  # of a block, about
CHUNK_BYTES = 2048  # of a row: as measured, 1024 to 4096 are alike
LONG_ROW = 8192  # bytes; shorter ones are left whole
LONG = 0.5  # of the second-level cache: rows that fill as much are cut
SUMS_BYTES = 288 * 1024  # of a block of sums, on the thread's stack
FEWEST_PANELS, MOST_PANELS = 4, 8  # fewer do not pay for sums that wait; as measured
FEWEST_TASKS = 8


@dataclass(frozen=True)
class Chunks:
    """depth: numbers of k at a time.  rows, panels: of a task."""

    depth: int
    rows: int
    panels: int


def sum_chunks(
    shape: Contraction, row: int, nanokernel: Nanokernel, bits: int, target: Target
) -> Chunks | None:
    """How a sum is cut, None to leave it whole.

    row: the dimension that tiles have rows of.  bits: of a number.
    """
    m, k = shape.extents[row], shape.extents[shape.reduced[-1]]
    size, room = bits // 8, target.caches.l2
    fits = k * size < LONG_ROW or min(m, ROWS) * k * size < LONG * room
    if len(shape.reduced) > 1 or fits:
        return None
    rows = row_block(m, nanokernel.rows, ROWS)
    columns = nanokernel.vectors * target.lanes(bits)
    panels = -(-shape.extents[shape.column] // columns)
    fitting = min(SUMS_BYTES, room // 4) // (rows * columns * size)
    others = (shape.extents[d] for d in shape.result if d not in (row, shape.column))
    blocks = -(-m // rows) * prod(others)
    most = min(fitting, MOST_PANELS, panels * blocks // FEWEST_TASKS)
    even = [n for n in range(FEWEST_PANELS, most + 1) if panels % n == 0]
    depth = divisor(k, min(CHUNK_BYTES, int(LONG * room) // ROWS) // size)
    if depth is None or most < FEWEST_PANELS:
        return None
    return Chunks(depth, rows, max(even, default=most))


def in_chunks(
    shape: Contraction, row: int, nanokernel: Nanokernel, columns: int, chunks: Chunks
) -> tuple[Directive, ...]:
    """The loops, outermost first."""
    reduced, result = shape.reduced[-1], list(shape.result)
    task = dict.fromkeys(shape.result, 1)
    task[row], task[shape.column] = chunks.rows, columns * chunks.panels
    if chunks.rows >= shape.extents[row]:
        task[row] = 0

    def sums(dim: int, size: int) -> Tile:
        every = range(len(shape.extents))
        return Tile(tuple(size if d == dim else 0 for d in every), (), "first")

    def last(dim: int, size: int) -> Tile:
        return Tile(tuple(size if d == dim else 0 for d in result), ("all",))

    extent = shape.extents[reduced]
    before = (-(-extent // chunks.depth) - 1) * chunks.depth
    several = chunks.panels > 1
    cut = (
        sums(reduced, chunks.depth),
        *([sums(shape.column, columns)] if several else []),
        sums(row, nanokernel.rows),
    )
    return (
        *([Split(reduced, before)] if before else []),
        Parallel(tuple(task[d] for d in result), ("all",)),
        *(cut if before else []),
        *([last(shape.column, columns)] if several else []),
        last(row, nanokernel.rows),
        nanokernel,
        Loops(),
    )


def may_be_cut(root: Op, last: Op) -> bool:
    """Whether sums can have a place of their own: from a number on, or read behind."""
    begin = root.operation.operands[2].owner
    return root != last or (not isinstance(begin, ir.Block) and is_fill(begin.opview))


def in_parts(root: Op, last: Op, shape: Contraction, chunks: Chunks) -> str:
    """Give sums that are cut a place of their own; what to tell people of it."""
    if chunks.depth >= shape.extents[shape.reduced[-1]]:
        return ""
    if root == last:
        result_apart(root)
    return f"; sums in chunks of {chunks.depth}"


def result_apart(root: Op) -> None:
    """Let an operation of its own write the result, so that the sums lie elsewhere.

    It has an operand that it does not read: what only copies is erased.
    """
    sums, fill = root.operation.results[0], root.operation.operands[2].owner
    assert not isinstance(fill, ir.Block), "a sum starts from a number"
    kind = ir.RankedTensorType(sums.type)
    result = fill.operands[0]
    with ir.InsertionPoint(fill), root.operation.location:
        fill.operands[0] = tensor.empty(kind.shape, kind.element_type)
    readers = [use.owner.operation for use in sums.uses]
    with ir.InsertionPoint.after(root), root.operation.location:
        unread = arith.constant(kind.element_type, 0.0)
        same = ir.AffineMap.get_identity(kind.rank)
        nothing = ir.AffineMap.get(kind.rank, 0, [])
        copied = pointwise([sums, unread], result, lambda x, _: x, [same, nothing])
    for reader in readers:
        reader.replace_uses_of_with(sums, copied)
    del root.operation.attributes["nanoloom.last"]
    mark(copied.owner.opview, "last")


def divisor(extent: int, wanted: int) -> int | None:
    """The part of an extent next to a size, in multiples of 4; None far from it."""
    parts = [
        extent // n
        for n in range(1, extent // 4)
        if extent % (4 * n) == 0 and wanted <= 2 * extent // n <= 4 * wanted
    ]
    return min(parts, key=lambda part: abs(part - wanted), default=None)
