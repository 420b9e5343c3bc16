"""8- and 16-bit integers by products of 16-bit pairs (vpmaddwd: SSE2, AVX2, AVX-512).

Reference loop, k in pairs; the sums are i32 and wrap:

    for k...: for r in rows: for c in columns:
        acc[r][c] += left[r][k] * right[k][c] + left[r][k + 1] * right[k + 1][c]

Bytes become 16-bit numbers: the left operand's once, in front of the loops, a panel's
while compiling where several tiles read it, else as they are loaded.  A pair of their
products is below 2^17; of 16-bit numbers it is at most 2^31, and wraps as sums do.
"""

from __future__ import annotations

from nanoloom.mlir import arith, ir
from nanoloom.vector.nanokernel import k_groups
from nanoloom.vector.nanokernel.instructions import instruction
from nanoloom.vector.nanokernel.operands.convert_lhs import convert_lhs, extended
from nanoloom.vector.nanokernel.tile.tile import Tile

PAIR = 2


def accumulate(tile: Tile, signed: tuple[bool, bool], function: str) -> list[ir.Value]:
    """Emit the loops; gives rows * vectors accumulators of i32.

    signed: whether the left and the right operand are.  function: vpmaddwd.
    """
    i16 = ir.IntegerType.get_signless(16)
    pair = ir.VectorType.get([PAIR], i16)
    wide = ir.VectorType.get([tile.lanes * PAIR], i16)
    convert_lhs(tile, i16, signed=signed[0])

    def left(row: k_groups.Row) -> ir.Value:
        numbers = extended(pair, row.together(), signed[0])
        return k_groups.spread(numbers, tile.lanes, i16)

    def right(panel: ir.Value) -> ir.Value:
        return extended(wide, panel, signed[1])

    def product(sums: ir.Value, one: ir.Value, other: ir.Value) -> ir.Value:
        return arith.addi(sums, instruction(function, sums.type, [one, other]))

    return k_groups.accumulate(tile, k_groups.Step(PAIR, ((left, right),), product))
