"""Whole AMX tiles in temporaries, where a tile reaches over its operand's edge.

Tile registers are loaded and stored whole; what is inside the result is copied, and
what a sum's last step takes of the left operand.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from nanoloom.ir.access import add, apply, function_around, index
from nanoloom.ir.linalg_query import Op, map_dims, maps
from nanoloom.ir.mlir import arith, ir, made_by, memref, vector
from nanoloom.linalg.builder.pointwise import itself, pointwise
from nanoloom.linalg.builder.tensor_slices import Number, bounds_of, extents_of
from nanoloom.nest.extent import Lanes
from nanoloom.vector.emit_loops import emit_loop
from nanoloom.vector.nanokernel.amx import instructions as tiles
from nanoloom.vector.nanokernel.amx.panels import LANES, MARK
from nanoloom.vector.nanokernel.tile.tile import read_vector, write_vector
from nanoloom.vector.scratch_memory import MADE
from nanoloom.vector.subview import subview
from nanoloom.vector.vector_copies import along_rows

WIDTH = 2 * tiles.COLUMNS
DYNAMIC = ir.ShapedType.get_dynamic_stride_or_offset()


def whole_block(op: Op, height: int) -> ir.Value:
    """Room for a tile of sums."""
    return room(op, height, WIDTH, ir.MemRefType(op.operation.operands[-1].type))


def room(op: Op, height: int, width: int, like: ir.MemRefType) -> ir.Value:
    """Rows of elements, made once at the function's beginning."""
    function = function_around(op)
    kind = ir.MemRefType.get([height, width], like.element_type)
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
        return memref.alloca(kind, [], [], alignment=tiles.ROW_BYTES)


def rows_from(
    buffer: ir.Value, place: int, start: ir.Value, many: ir.Value
) -> ir.Value:
    """So many rows of a buffer from one on; place: which of its dimensions they are."""
    extents = extents_of(buffer)
    extents[place] = many
    starts: list[Number] = [start if d == place else 0 for d in range(len(extents))]
    return subview(buffer, starts, extents)


def room_of(out: ir.Value) -> ir.Value:
    """The temporary that a result is the beginning of, as large as a tile of sums.

    What else is in it nobody reads.  The result itself if there is none.
    """
    part = made_by(out, "memref.subview")
    if part is None or bounds_of(part)[0] != [0] * ir.MemRefType(out.type).rank:
        return out
    room = part.operands[0]
    small = prod(ir.MemRefType(room.type).shape) <= 2 * tiles.ROWS * WIDTH
    return room if small and made_by(room, *MADE) else out


def last_columns(
    op: Op, ivs: list[ir.Value], count: ir.Value | None, height: int, rest: int
) -> ir.Value:
    """The left operand's last `rest` numbers of each row, zeros behind them.

    A block of its own: what lies behind a row may be a NaN, or no memory.  ivs: where
    the last step begins.  count: rows inside, None if all are; they are the block's
    last ones, the others stay unknown.
    """
    left = op.operation.operands[0]
    kind = ir.MemRefType(left.type)
    row = op.operation.attributes[MARK].value  # type: ignore[attr-defined]
    together = tiles.ROW_BYTES // tiles.bytes_of(left)
    block = room(op, height, together, kind)
    first = index(0) if count is None else arith.subi(index(height), count)

    def copy(r: ir.Value, _: object) -> None:
        own = add(first, r)
        here = [add(iv, own) if d == row else iv for d, iv in enumerate(ivs)]
        at = [apply(e, here) for e in maps(op)[0].results]
        numbers = read_columns(left, at, together, index(rest))
        write_vector(numbers, block, [own, index(0)], None)

    emit_loop((0, height if count is None else count), 1, [], copy)
    return block


def read_columns(
    source: ir.Value, at: list[ir.Value], lanes: int, inside: ir.Value | None
) -> ir.Value:
    """A vector of the innermost dimension, zeros in all lanes but the first ones.

    inside: how many those are, None for all.
    """
    bits = ir.VectorType.get([lanes], ir.IntegerType.get_signless(1))
    mask = None if inside is None else vector.create_mask(bits, [inside])
    return read_vector(source, at, lanes, mask)


def copy_out(
    op: Op, block: ir.Value, out: ir.Value, height: int, count: ir.Value | None
) -> None:
    """Copy the rows and columns of a block that are inside the result."""
    rank = ir.MemRefType(out.type).rank
    whole = ir.AffineMap.get_identity(rank)
    moved = inside(block, out, height, count)
    pointwise([moved], out, itself, [in_block(op, rank)], whole, vectors(op, rank))


def copy_in(
    op: Op, block: ir.Value, out: ir.Value, height: int, count: ir.Value | None
) -> None:
    """Copy what is inside the result into a block; the rest of it stays unknown."""
    rank = ir.MemRefType(out.type).rank
    whole = ir.AffineMap.get_identity(rank)
    moved = inside(block, out, height, count)
    pointwise([out], moved, itself, [whole], in_block(op, rank), vectors(op, rank))


def vectors(op: Op, rank: int) -> Mapping[str, ir.Attribute]:
    """Of a copy whose innermost loop, of so many, goes along the tile's columns."""
    return along_rows(rank, Lanes(op.operation.attributes[LANES].value))  # type: ignore[attr-defined]


def inside(
    block: ir.Value, out: ir.Value, height: int, count: ir.Value | None
) -> ir.Value:
    """The result's part of a block: its last rows, those of a tile that begins earlier.

    As wide as the result, so that a copy in either direction has its extents.
    """
    shift = index(0) if count is None else arith.subi(index(height), count)
    many = index(height) if count is None else count
    width = memref.dim(out, index(ir.MemRefType(out.type).rank - 1))
    return subview(block, [shift, 0], [many, width])


def in_block(op: Op, rank: int) -> ir.AffineMap:
    """Where an element of the result lies in the block."""
    row = op.operation.attributes[MARK].value  # type: ignore[attr-defined]
    dims = [ir.AffineDimExpr.get(d) for d in range(rank)]
    rows: ir.AffineExpr = ir.AffineConstantExpr.get(0)
    if row >= 0:
        rows = dims[place_of_dim(maps(op)[-1], row)]
    return ir.AffineMap.get(rank, 0, [rows, dims[-1]])


def place_of_dim(indexing: ir.AffineMap, dim: int) -> int:
    """Which of a result's dimensions a loop runs along."""
    return map_dims(indexing).index(dim)
