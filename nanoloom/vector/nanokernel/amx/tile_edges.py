"""Whole AMX tiles in temporaries, where a tile reaches over its operand's edge.

Tile registers are loaded and stored whole; what is inside the result is copied, and
what a sum's last step takes of the left operand.
"""

from __future__ import annotations

from math import prod

from nanoloom.ir.access import add, apply, function_around, index
from nanoloom.ir.linalg_query import Op, map_dims, maps
from nanoloom.ir.mlir import arith, ir, made_by, memref, vector
from nanoloom.linalg.builder.tensor_slices import Number, bounds_of, extents_of
from nanoloom.vector.emit_loops import emit_loop
from nanoloom.vector.nanokernel.amx import instructions as tiles
from nanoloom.vector.nanokernel.amx.panels import MARK
from nanoloom.vector.nanokernel.tile.tile import read_vector, write_vector
from nanoloom.vector.scratch_memory import MADE
from nanoloom.vector.subview import subview

WIDTH = 2 * tiles.COLUMNS


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


def place_of_dim(indexing: ir.AffineMap, dim: int) -> int:
    """Which of a result's dimensions a loop runs along."""
    return map_dims(indexing).index(dim)
