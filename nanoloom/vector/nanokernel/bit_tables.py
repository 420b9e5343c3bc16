"""Bits that differ, four at a time from a table: shuffles of bytes (pshufb) look it up.

Reference loop, k in bytes, which are numbers of eight bits, each with two halves:

    for k...: for r in rows: for c in columns: for h in halves:
        acc[r][c] += table[left[r][k].h][right[k][c].h]

with table[a][b] = ones(a ^ b).  A lane of a vector is a byte of one column: the row's
half says which 16 bytes of the table a shuffle takes, the columns' halves are the
places in it.  One shuffle and one addition are 128 products of bits on AVX2, where
counting the ones of a vector takes eight instructions for 256 of them.

The halves of the left operand's rows are places in the table already: they are made in
front of the loops, with all that tiles read of it (widened.py).  Sums are kept in
bytes, then in 16 bits.
"""

from __future__ import annotations

import numpy as np

from nanoloom.ir.access import index
from nanoloom.ir.mlir import arith, ir, memref, tensor, vector
from nanoloom.target.facts import Target
from nanoloom.target.instructions import x86
from nanoloom.target.instructions.choose import of_width
from nanoloom.target.instructions.composed import BYTE_STEPS
from nanoloom.vector.nanokernel.fma import maps, start_values, vector_kind
from nanoloom.vector.nanokernel.instructions import instruction
from nanoloom.vector.nanokernel.narrow_accumulators import NarrowSums
from nanoloom.vector.nanokernel.operands.convert_lhs import convert_lhs
from nanoloom.vector.nanokernel.operands.packed_panel import PackedPanel
from nanoloom.vector.nanokernel.reduction_loops import unrolled
from nanoloom.vector.nanokernel.tile.instruction_order import in_order
from nanoloom.vector.nanokernel.tile.task import whole_loops
from nanoloom.vector.nanokernel.tile.tile import Tile, place_of
from nanoloom.vector.table_lookups import BYTE, PIECE, repeated
from nanoloom.vector.widths import filled, with_element

FOUR = 4  # vectors of 32-bit sums for one of bytes
HALF, LOW, HIGH = 4, 0x0F, 0xF0
Values = list[ir.Value]


def accumulate(tile: Tile, target: Target) -> Values:
    """Emit the loops; gives rows * vectors accumulators of i32."""
    i8, i16 = (ir.IntegerType.get_signless(bits) for bits in (8, 16))
    lanes = tile.lanes * FOUR
    kind, pairs = ir.VectorType.get([lanes], i8), ir.VectorType.get([lanes], i16)
    start = start_values(tile, vector_kind(tile))
    convert_lhs(tile, i16, places_of)
    count = tile.plan.rows * tile.plan.vectors // FOUR
    shuffle = of_width(target, x86.SHUFFLES, BYTE * lanes)
    assert shuffle is not None, "fit.py lets no other pass"
    step = Step(tile, kind, table_of(tile, kind), shuffle.function)

    def added(sums: Values, bytes_: Values) -> Values:
        given = zip(sums, bytes_, strict=True)
        return [arith.addi(sum_, arith.extui(pairs, each)) for sum_, each in given]

    zero = filled(pairs, 0)
    sums = NarrowSums(tile, kind, count, 1, BYTE_STEPS, step, unrolled, step, added)
    return widest(tile, sums.accumulate([zero] * count), start)


def widest(tile: Tile, sums: Values, start: Values) -> Values:
    """Sums in 16 bits as those of 32, with what they started from."""
    kind, made = vector_kind(tile), list[ir.Value]()
    for each in sums:
        for first in range(0, tile.lanes * FOUR, tile.lanes):
            places = list(range(first, first + tile.lanes))
            part = arith.extui(kind, vector.shuffle(each, each, places))
            made.append(arith.addi(start[len(made)], part))
    return made


def places_of(number: ir.Value) -> ir.Value:
    """Eight bits as two places in the table, 16 bytes apart, in a number of 16 bits."""
    wide = with_element(number.type, ir.IntegerType.get_signless(16))
    bits = arith.extui(wide, number)
    low = arith.shli(arith.andi(bits, filled(wide, LOW)), filled(wide, HALF))
    high = arith.shli(arith.andi(bits, filled(wide, HIGH)), filled(wide, 2 * HALF))
    return arith.ori(low, high)


def table_of(tile: Tile, kind: ir.VectorType) -> ir.Value:
    """The table, written once for all tiles of a task."""
    halves = np.arange(PIECE, dtype=np.uint8)
    table = np.bitwise_count(halves[:, None] ^ halves).reshape(-1)
    (lanes,) = kind.shape
    made = ir.MemRefType.get([table.size], kind.element_type)
    with ir.InsertionPoint(whole_loops(tile.op)):
        room = memref.alloc(made, [], [], alignment=2 * lanes)
        for first in range(0, table.size, lanes):
            piece = table[first : first + lanes].tolist()
            numbers = ir.Attribute.parse(f"dense<{piece}> : {kind}")
            vector.store(arith.ConstantOp(kind, numbers).result, room, [index(first)])
    return room


class Step:
    """One byte of every row and column."""

    def __init__(
        self, tile: Tile, kind: ir.VectorType, table: ir.Value, shuffle: str
    ) -> None:
        self.tile, self.kind, self.table, self.shuffle = tile, kind, table, shuffle
        self.rows = tile.row_indices
        self.panel = PackedPanel.of(tile, most=BYTE_STEPS)

    def __call__(self, ivs: Values, sums: Values) -> Values:
        several = self.tile.plan.vectors // FOUR
        columns = [self.panel.read(ivs, v, FOUR) for v in range(several)]
        halves = [[self.half(column, half) for half in range(2)] for column in columns]
        made: Values = []
        for row in self.rows:  # its numbers in front of its products
            now = sums[len(made) : len(made) + several]
            for half, place in enumerate(self.places(ivs, row)):
                pieces = self.pieces(place)
                found = [
                    instruction(self.shuffle, self.kind, [pieces, column[half]])
                    for column in halves
                ]
                pairs = zip(now, found, strict=True)
                now = [arith.addi(sum_, ones) for sum_, ones in pairs]
            made += in_order(self.tile.plan, now)
        return made

    def half(self, column: ir.Value, half: int) -> ir.Value:
        """The columns' low or high halves as places in 16 bytes."""
        mask = filled(self.kind, LOW)
        if half:
            column = arith.shrui(column, filled(self.kind, HALF))
        return arith.andi(column, mask)

    def places(self, ivs: Values, row: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Where a row's halves begin in the table."""
        at = place_of(
            maps(self.tile.op)[self.tile.shape.left], self.tile.at_row(ivs, row)
        )
        both = tensor.extract(self.tile.left, at)
        byte = arith.constant(both.type, 0xFF)
        low = arith.andi(both, byte)
        high = arith.shrui(both, arith.constant(both.type, 8))
        found = (arith.index_castui(ir.IndexType.get(), x) for x in (low, high))
        one, other = found
        return one, other

    def pieces(self, place: ir.Value) -> ir.Value:
        """A row of the table, in each 16 lanes of a vector."""
        kind = ir.VectorType.get([PIECE], self.kind.element_type)
        return repeated(vector.load(kind, self.table, [place]), self.kind)
