"""Rows of narrow numbers as they lie: sums of every second column each.

Reference loop, for c over pairs of columns:

    for k...: for r in rows: for c...:
        even[r][c] += wide(left[r][k]) * wide(right[k][2 * c])
        odd[r][c] += wide(left[r][k]) * wide(right[k][2 * c + 1])
    for r in rows: for c...: acc[r][2 * c], acc[r][2 * c + 1] = even[r][c], odd[r][c]

A vector of twice as many numbers becomes two wide ones by an instruction each, in the
order of the columns it would take two (paper, section 4.4: Algorithm 3, lines 14 to 27;
Listing 20).  Nothing is masked: few units can mask numbers that are narrower than 32
bits.  A tile over the edge begins in front of its columns, and its sums are moved to
their places behind the loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nanoloom.ir.access import add, as_index, index
from nanoloom.ir.linalg_query import map_dims, maps
from nanoloom.ir.mlir import arith, ir, tensor, vector
from nanoloom.vector.nanokernel.fma import outer_products
from nanoloom.vector.nanokernel.k_groups import Prepare
from nanoloom.vector.nanokernel.operands.vector_load_lhs import Number
from nanoloom.vector.nanokernel.reduction_loops import start_values, vector_kind
from nanoloom.vector.nanokernel.tile.tile import (
    Tile,
    initial_number,
    origin,
    place_of,
    plus,
    read_vector,
    write_vector,
    zero_of,
)

PAIR = 2


def accumulate(tile: Tile, halves: Sequence[Prepare], number: Number) -> list[ir.Value]:
    """Emit the loops; gives rows * vectors accumulators, in order.

    halves: of 2 * lanes numbers those at even and at odd places, wide.  number: one of
    the left operand in every lane.
    """
    window = window_of(tile)

    def column(ivs: list[ir.Value], v: int) -> ir.Value:
        return halves[v % PAIR](window.read(ivs, v // PAIR * PAIR))

    kind = vector_kind(tile)
    first = initial_number(tile.op.operation.operands[2])
    begin = vector.broadcast(kind, first or zero_of(kind.element_type))
    starts = [begin] * (tile.plan.rows * tile.plan.vectors)
    sums = in_order(outer_products(tile, column, number, starts), tile.lanes)
    if window.shift is not None:
        sums = moved(tile, sums, window.shift)
    if first is not None:
        return sums
    # What the result holds is in order: it is added now, and takes no registers before.
    held = start_values(tile, kind)
    return [arith.addf(*both) for both in zip(held, sums, strict=True)]


@dataclass(frozen=True)
class Window:
    """What a tile reads of the right operand: its columns, or some in front of them.

    operand: all of it.  offsets: where the window begins.  shift: so many columns lie
    in front of the tile's own, None where the tile is always full.
    """

    tile: Tile
    operand: ir.Value
    offsets: list[ir.Value | int]
    shift: ir.Value | None = None

    def read(self, ivs: list[ir.Value], v: int) -> ir.Value:
        """Two vectors of columns, from the v-th on."""
        here = list(ivs)
        here[self.tile.shape.column] = index(v * self.tile.lanes)
        inside = place_of(maps(self.tile.op)[self.tile.shape.right], here)
        at = [as_index(plus(*x)) for x in zip(inside, self.offsets, strict=True)]
        return read_vector(self.operand, at, PAIR * self.tile.lanes, None)


def window_of(tile: Tile) -> Window:
    """The window of a tile."""
    if tile.right_copy is not None:
        return Window(tile, tile.right, [0] * ir.RankedTensorType(tile.right.type).rank)
    operand, offsets = origin(tile.right)
    if tile.column_count is None:
        return Window(tile, operand, offsets)
    place = map_dims(maps(tile.op)[tile.shape.right]).index(tile.shape.column)
    last = ir.RankedTensorType(operand.type).shape[place] - tile.columns
    begin = as_index(offsets[place])
    offsets[place] = arith.minui(begin, index(last))
    return Window(tile, operand, offsets, arith.subi(begin, offsets[place]))


def in_order(sums: list[ir.Value], lanes: int) -> list[ir.Value]:
    """Vectors of even and of odd columns as vectors of neighbours."""
    woven = [lane for c in range(lanes) for lane in (c, lanes + c)]
    return [
        vector.ShuffleOp(*pair, half, results=[pair[0].type]).result
        for pair in zip(sums[::PAIR], sums[1::PAIR], strict=True)
        for half in (woven[:lanes], woven[lanes:])
    ]


def moved(tile: Tile, sums: list[ir.Value], shift: ir.Value) -> list[ir.Value]:
    """The sums `shift` columns further to the front, by way of memory."""
    vectors, lanes = tile.plan.vectors, tile.lanes
    element = ir.VectorType(sums[0].type).element_type
    room = tensor.empty([tile.plan.rows, tile.columns], element)
    places = [(r, v) for r in range(tile.plan.rows) for v in range(vectors)]
    for (r, v), value in zip(places, sums, strict=True):
        room = write_vector(value, room, [index(r), index(v * lanes)], None)
    return [
        read_vector(
            room, [index(r), add(shift, index(v * lanes))], lanes, tile.mask(r, v)
        )
        for r, v in places
    ]
