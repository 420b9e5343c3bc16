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

from dataclasses import replace

import numpy as np

from nanoloom.ir.access import index
from nanoloom.ir.mlir import arith, ir, memref, vector
from nanoloom.nest.extent import Lanes
from nanoloom.target.facts import Target
from nanoloom.target.instructions import x86
from nanoloom.target.instructions.choose import of_width
from nanoloom.target.instructions.composed import BYTE_STEPS
from nanoloom.vector.nanokernel import k_groups
from nanoloom.vector.nanokernel.instructions import instruction
from nanoloom.vector.nanokernel.narrow_accumulators import NarrowSums
from nanoloom.vector.nanokernel.operands.convert_lhs import convert_lhs
from nanoloom.vector.nanokernel.reduction_loops import start_values, vector_kind
from nanoloom.vector.nanokernel.tile.task import whole_loops
from nanoloom.vector.nanokernel.tile.tile import Tile
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
    several = tile.plan.vectors // FOUR
    plan = replace(tile.plan, lanes=Lanes(lanes), vectors=several)
    narrow = replace(tile, plan=plan)
    made = k_groups.Sums(narrow, step_of(tile, kind, target), tile.row_indices)

    def added(sums: Values, bytes_: Values) -> Values:
        given = zip(sums, bytes_, strict=True)
        return [arith.addi(sum_, arith.extui(pairs, each)) for sum_, each in given]

    count = tile.plan.rows * several
    sums = NarrowSums(
        narrow, kind, count, 1, BYTE_STEPS, made.whole, made.innermost, made.whole,
        added,
    )  # fmt: skip
    return widest(tile, sums.accumulate([filled(pairs, 0)] * count), start)


def step_of(tile: Tile, kind: ir.VectorType, target: Target) -> k_groups.Step:
    """One byte of every row and column.  kind: of the columns'."""
    table, piece = table_of(tile, kind), ir.VectorType.get([PIECE], kind.element_type)
    shuffle = of_width(target, x86.SHUFFLES, BYTE * kind.shape[0])
    assert shuffle is not None, "fit.py lets no other pass"

    def left(row: k_groups.Row) -> Values:
        """Where a row's halves begin in the table."""
        both, place = row.number(0), ir.IndexType.get()
        low = arith.andi(both, arith.constant(both.type, 0xFF))
        high = arith.shrui(both, arith.constant(both.type, BYTE))
        return [arith.index_castui(place, x) for x in (low, high)]

    def right(column: ir.Value) -> Values:
        """The columns' halves as places in 16 bytes."""
        mask, high = filled(kind, LOW), arith.shrui(column, filled(kind, HALF))
        return [arith.andi(x, mask) for x in (column, high)]

    def by_row(sums: Values, left: Values, rights: list[Values]) -> Values:
        """Half by half: one register has what is looked up, in each 16 lanes."""
        for half, place in enumerate(left):
            pieces = repeated(vector.load(piece, table, [place]), kind)
            found = [
                instruction(shuffle.function, kind, [pieces, right[half]])
                for right in rights
            ]
            sums = [arith.addi(*x) for x in zip(sums, found, strict=True)]
        return sums

    def product(sum_: ir.Value, left: Values, right: Values) -> ir.Value:
        return by_row([sum_], left, [right])[0]

    return k_groups.Step(1, ((left, right),), product, BYTE_STEPS, by_row=by_row)


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
