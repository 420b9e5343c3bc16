"""bf16 and f16 by dot products of pairs (vdpbf16ps, vdpphps, Arm's bfdot).

Reference loop, k in pairs; the sums are f32:

    for k...: for r in rows: for c in columns:
        acc[r][c] += left[r][k] * right[k][c] + left[r][k + 1] * right[k + 1][c]

Panels hold pairs; rows that are not packed are interleaved in registers.
"""

from __future__ import annotations

from nanoloom.mlir import ir
from nanoloom.target.instructions.choose import DotUse
from nanoloom.vector.nanokernel import k_groups
from nanoloom.vector.nanokernel.instructions import dot
from nanoloom.vector.nanokernel.tile.tile import Tile

PAIR = 2


def accumulate(tile: Tile, use: DotUse) -> list[ir.Value]:
    """Emit the loops; gives rows * vectors accumulators of f32."""
    element = ir.RankedTensorType(tile.left.type).element_type

    def left(row: k_groups.Row) -> ir.Value:
        return k_groups.spread(row.together(), tile.lanes, element)

    def product(sums: ir.Value, one: ir.Value, other: ir.Value) -> ir.Value:
        return dot(use.dot, sums, one, other)

    step = k_groups.Step(PAIR, ((left, lambda panel: panel),), product)
    return k_groups.accumulate(tile, step)
