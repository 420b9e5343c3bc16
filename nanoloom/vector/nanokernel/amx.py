"""AMX: 32 x 32 results in four tile registers (paper, Fig. 2c and Listing 3).

Takes the generics on buffers that vnni_panels.py has marked: bf16 with sums in f32,
bytes of any signs with sums in i32.  The left operand is read as it is, 16 rows of 64
bytes at any distance; the panel likewise.  Where a sum ends within such a row, zeros
fill up both: the panel has them, the left operand's last columns are copied.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.kernels.contraction import element
from nanoloom.kernels.structure import Op, inputs, is_generic, iterators, maps
from nanoloom.mlir import arith, ir, memref, scf
from nanoloom.vector.access import index
from nanoloom.vector.nanokernel import amx_instructions as tiles
from nanoloom.vector.nanokernel.amx_block import (
    copy_in,
    copy_out,
    last_columns,
    place_of_dim,
    whole_block,
)
from nanoloom.vector.nanokernel.vnni_panels import FRESH, HEIGHT, MARK
from nanoloom.vector.prefetch import prefetch_tiles


@dataclass(frozen=True)
class LeftRows:
    """Where the left operand's rows of a tile lie.

    row: the loop that they run along, -1 for a single row.  parts: how many of them go
    to each tile register.
    """

    buffer: ir.Value
    indexing: ir.AffineMap
    row: int
    parts: list[int]


def lower(op: Op) -> None:
    """Replace a marked generic on buffers by tile instructions."""
    left, right, out = op.operation.operands
    row = op.operation.attributes[MARK].value  # type: ignore[attr-defined]
    height = op.operation.attributes[HEIGHT].value  # type: ignore[attr-defined]
    count = row_count(op, out, row, height)
    fresh = FRESH in op.operation.attributes
    begun = (
        [tiles.zero(rows) for rows in heights(height) for _ in range(2)]
        if fresh
        else sums_of(op, out, row, height, count)
    )
    rows = LeftRows(left, maps(op)[0], row, heights(height))
    sums = accumulate(op, right, rows, count, begun)
    if not whole_columns(out):
        through_block(op, sums, out, row, height, count)
    elif count is None:
        store(sums, out, op, row, height)
    else:
        full = arith.cmpi(arith.CmpIPredicate.eq, count, index(height))
        either = scf.IfOp(full, has_else=True)
        with ir.InsertionPoint(either.then_block):
            store(sums, out, op, row, height)
            scf.yield_([])
        with ir.InsertionPoint(either.else_block):
            through_block(op, sums, out, row, height, count)
            scf.yield_([])
    if fresh:
        forget_fill(op, out)
    op.operation.erase()


def through_block(
    op: Op,
    sums: list[ir.Value],
    out: ir.Value,
    row: int,
    height: int,
    count: ir.Value | None,
) -> None:
    """Store whole tiles on the stack and copy what is inside the result."""
    block = whole_block(op, height)
    store(sums, block, None, row, height)
    copy_out(op, block, out, height, count)


def whole_columns(out: ir.Value) -> bool:
    """Whether the result takes all columns of the tile registers."""
    kind = ir.MemRefType(out.type)
    last = kind.rank - 1
    return not kind.is_dynamic_dim(last) and kind.shape[last] == 2 * tiles.COLUMNS


def row_count(op: Op, out: ir.Value, row: int, height: int) -> ir.Value | None:
    """How many rows are inside the result, None if a whole tile always is."""
    place = place_of_dim(maps(op)[2], row)
    kind = ir.MemRefType(out.type)
    if row < 0 or (not kind.is_dynamic_dim(place) and kind.shape[place] == height):
        return None
    return memref.dim(out, index(place))


def heights(height: int) -> list[int]:
    """Rows of each tile register that a tile of this height takes."""
    return [min(tiles.ROWS, height - start) for start in range(0, height, tiles.ROWS)]


def accumulate(
    op: Op,
    right: ir.Value,
    left: LeftRows,
    count: ir.Value | None,
    begun: list[ir.Value],
) -> list[ir.Value]:
    """The reduction loops; gives a tile register of sums for each part of the tile.

    A tile over the edge begins `height - count` rows earlier: those rows are computed
    again and not written.  begun: the sums that it goes on from.
    """
    reduced = [d for d, k in enumerate(iterators(op)) if k == "reduction"]
    depth = reduced_extents(op, right, reduced)
    ivs = first_place(op, left.row, count, sum(left.parts))

    def nest(level: int, here: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
        if level == len(reduced) - 1:
            return along(op, right, left, count, here, sums, depth[-1])
        loop = scf.ForOp(index(0), index(depth[level]), index(1), sums)
        with ir.InsertionPoint(loop.body):
            inner = list(here)
            inner[reduced[level]] = loop.induction_variable
            scf.yield_(nest(level + 1, inner, list(loop.inner_iter_args)))
        return list(loop.results)

    return nest(0, ivs, begun)


def first_place(
    op: Op, row: int, count: ir.Value | None, height: int
) -> list[ir.Value]:
    """The loop variables where a tile begins."""
    ivs = [index(0) for _ in iterators(op)]
    if count is not None:
        ivs[row] = arith.subi(count, index(height))
    return ivs


def sums_of(
    op: Op, out: ir.Value, row: int, height: int, count: ir.Value | None
) -> list[ir.Value]:
    """Tile registers of what the result holds, nothing beyond it is loaded."""
    if whole_columns(out):
        ivs = first_place(op, row, count, height)
        return loaded(out, maps(op)[2], row, ivs, heights(height))
    block = whole_block(op, height)
    copy_in(op, block, out, height, count)
    identity = ir.AffineMap.get_identity(2)
    return loaded(block, identity, 0, [index(0)] * 2, heights(height))


def loaded(
    source: ir.Value,
    indexing: ir.AffineMap,
    row: int,
    ivs: list[ir.Value],
    parts: list[int],
) -> list[ir.Value]:
    """Tile registers from memory, two beside each other for each part."""
    distance = tiles.row_distance(source, indexing, row)
    made: list[ir.Value] = []
    for part, rows in enumerate(parts):
        for v in range(2):
            ahead = part * tiles.ROWS * distance + v * tiles.ROW_BYTES
            place = tiles.address(source, indexing, ivs, ahead)
            made.append(tiles.load(place, rows, distance))
    return made


def reduced_extents(op: Op, right: ir.Value, reduced: list[int]) -> list[int]:
    """Extents of the reduced dimensions: outer ones of the panel, the last of left."""
    kind = ir.MemRefType(right.type)
    outer = list(kind.shape)[-1 - len(reduced) : -2]
    left = op.operation.operands[0]
    shape = ir.MemRefType(left.type).shape
    place = place_of_dim(maps(op)[0], reduced[-1])
    return [*outer, shape[place]]


def along(
    op: Op,
    right: ir.Value,
    left: LeftRows,
    count: ir.Value | None,
    ivs: list[ir.Value],
    sums: list[ir.Value],
    extent: int,
) -> list[ir.Value]:
    """The last reduced dimension: whole tile rows in a loop, then what is left."""
    dims = [d for d, k in enumerate(iterators(op)) if k == "reduction"]
    together = tiles.ROW_BYTES // tiles.bytes_of(right)
    whole = extent // together * together
    rest = extent - whole
    behind = at_step(ivs, dims[-1], index(whole))
    # In front of the loop: a tile register waits for what has just been written.
    block = last_columns(op, behind, count, sum(left.parts), rest) if rest else None
    if whole:
        loop = scf.ForOp(index(0), index(whole), index(together), sums)
        with ir.InsertionPoint(loop.body):
            prefetch_tiles(right, len(dims), loop.body)
            here = at_step(ivs, dims[-1], loop.induction_variable)
            carried = list(loop.inner_iter_args)
            scf.yield_(step(op, right, left, here, here, carried))
        sums = list(loop.results)
    if block is None:
        return sums
    last = LeftRows(block, ir.AffineMap.get_identity(2), 0, left.parts)
    return step(op, right, last, [index(0)] * 2, behind, sums)


def at_step(ivs: list[ir.Value], dim: int, value: ir.Value) -> list[ir.Value]:
    """The loop variables with one of them at a value."""
    return [*ivs[:dim], value, *ivs[dim + 1 :]]


def step(
    op: Op,
    right: ir.Value,
    left: LeftRows,
    at: list[ir.Value],
    ivs: list[ir.Value],
    sums: list[ir.Value],
) -> list[ir.Value]:
    """Load the tiles of one step and multiply each pair of them.

    at: the loop variables of the left operand's place, ivs: those of the right one's.
    """
    distance = tiles.row_distance(left.buffer, left.indexing, left.row)
    product = tiles.PRODUCTS[element(op, 0), element(op, 1)]
    below = tiles.row_distance_of(right)
    starts = [
        tiles.address(right, maps(op)[1], ivs, v * tiles.ROW_BYTES) for v in range(2)
    ]
    panels = [tiles.load(start, tiles.ROWS, below) for start in starts]
    made: list[ir.Value] = []
    for part, rows in enumerate(left.parts):
        ahead = part * tiles.ROWS * distance
        start = tiles.address(left.buffer, left.indexing, at, ahead)
        tile = tiles.load(start, rows, distance)
        made += [
            tiles.multiply(product, rows, sums[2 * part + v], tile, panels[v])
            for v in range(2)
        ]
    return made


def store(
    sums: list[ir.Value], target: ir.Value, op: Op | None, row: int, height: int
) -> None:
    """Write the tile registers: into the result itself, or a block of whole tiles."""
    rank = ir.MemRefType(target.type).rank
    if op is None:
        indexing, count, at = ir.AffineMap.get_identity(rank), rank, 0
    else:
        indexing, count, at = maps(op)[2], maps(op)[2].n_dims, row
    distance = tiles.row_distance(target, indexing, at) if height > 1 else 128
    ivs = [index(0)] * count
    for part, rows in enumerate(heights(height)):
        for v in range(2):
            ahead = part * tiles.ROWS * distance + v * tiles.COLUMNS * 4
            start = tiles.address(target, indexing, ivs, ahead)
            tiles.store(sums[2 * part + v], rows, start, distance)


def forget_fill(op: Op, out: ir.Value) -> None:
    """Erase the zeros that were written where the sums go."""
    for other in list(op.operation.block.operations):
        if other.operation == op.operation:
            return
        operands = list(other.operation.operands)
        if is_generic(other) and not inputs(other) and operands == [out]:
            other.operation.erase()
