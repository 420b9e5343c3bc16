"""8-bit integers on any vector unit: every number becomes a lane of 32 bits.

Reference loop; the sums are i32 and wrap:

    for k...: for r in rows: for c in columns:
        acc[r][c] += i32(left[r][k]) * i32(right[k][c])
"""

from __future__ import annotations

from nanoloom.mlir import arith, ir, vector
from nanoloom.vector.nanokernel import k_groups
from nanoloom.vector.nanokernel.operands.convert_lhs import convert_lhs, extended
from nanoloom.vector.nanokernel.tile.tile import Tile


def accumulate(tile: Tile, signed: tuple[bool, bool]) -> list[ir.Value]:
    """Emit the loops; gives rows * vectors accumulators of i32.

    signed: whether the left and the right operand are.
    """
    i32 = ir.IntegerType.get_signless(32)
    wide = ir.VectorType.get([tile.lanes], i32)
    convert_lhs(tile, i32, signed=signed[0])

    def left(row: k_groups.Row) -> ir.Value:
        return vector.broadcast(wide, extended(i32, row.number(0), signed[0]))

    def right(numbers: ir.Value) -> ir.Value:
        return extended(wide, numbers, signed[1])

    return k_groups.accumulate(tile, k_groups.Step(1, ((left, right),), multiply_add))


def multiply_add(sums: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
    return arith.addi(sums, arith.muli(left, right))
