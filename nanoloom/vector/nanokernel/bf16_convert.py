"""bf16 by loads that convert (AVX-NE-CONVERT): even, odd or one for all lanes.

Reference loop, k in pairs; the sums are f32, products are exact in it:

    for k...: for r in rows: for c in columns:
        acc[r][c] += f32(left[r][k]) * f32(right[k][c])
        acc[r][c] += f32(left[r][k + 1]) * f32(right[k + 1][c])

vcvtneebf162ps loads the numbers of a panel with even k, vcvtneobf162ps the others,
vbcstnebf162ps one number of the left operand for every lane.
"""

from __future__ import annotations

from nanoloom.mlir import ir, vector
from nanoloom.vector.nanokernel import groups
from nanoloom.vector.nanokernel.bf16_halves import PAIR, multiply_add
from nanoloom.vector.nanokernel.instructions import EVEN, ODD, ONE, instruction
from nanoloom.vector.nanokernel.tile import Tile


def accumulate(tile: Tile) -> list[ir.Value]:
    """Emit the loops; gives rows * vectors accumulators of f32."""
    wide = ir.VectorType.get([tile.lanes], ir.F32Type.get())

    def left(number: int) -> groups.PrepareRow:
        def make(row: groups.Row) -> ir.Value:
            if number >= row.count:
                return vector.broadcast(wide, groups.zero_of(wide.element_type))
            return instruction(ONE, wide, [row.alone(number)])

        return make

    def right(name: str) -> groups.Prepare:
        return lambda panel: instruction(name, wide, [panel])

    parts = ((left(0), right(EVEN)), (left(1), right(ODD)))
    return groups.accumulate(tile, groups.Step(PAIR, parts, multiply_add))
