"""bf16 by loads that convert (AVX-NE-CONVERT): even, odd or one for all lanes.

Reference loop, k in pairs; the sums are f32, products are exact in it:

    for k...: for r in rows: for c in columns:
        acc[r][c] += f32(left[r][k]) * f32(right[k][c])
        acc[r][c] += f32(left[r][k + 1]) * f32(right[k + 1][c])

vcvtneebf162ps loads the numbers of a panel with even k, vcvtneobf162ps the others,
vbcstnebf162ps one number of the left operand for every lane.  Of a row that is not
packed they are those of even and of odd columns (bf16_flat.py).
"""

from __future__ import annotations

from nanoloom.kernels.linalg_query import maps
from nanoloom.mlir import ir, vector
from nanoloom.vector.nanokernel import bf16_flat, k_groups
from nanoloom.vector.nanokernel.bf16_halves import PAIR, multiply_add
from nanoloom.vector.nanokernel.instructions import EVEN, ODD, ONE, instruction
from nanoloom.vector.nanokernel.tile.tile import Tile, place_of, read_vector


def accumulate(tile: Tile) -> list[ir.Value]:
    """Emit the loops; gives rows * vectors accumulators of f32."""
    wide = ir.VectorType.get([tile.lanes], ir.F32Type.get())

    def right(name: str) -> k_groups.Prepare:
        return lambda numbers: instruction(name, wide, [numbers])

    if not tile.plan.packed:

        def one(ivs: list[ir.Value], row: int) -> ir.Value:
            del row
            place = place_of(maps(tile.op)[tile.shape.left], ivs)
            return instruction(ONE, wide, [read_vector(tile.left, place, 1, None)])

        return bf16_flat.accumulate(tile, right(EVEN), right(ODD), one)

    def left(number: int) -> k_groups.PrepareRow:
        def make(row: k_groups.Row) -> ir.Value:
            if number >= row.count:
                return vector.broadcast(wide, k_groups.zero_of(wide.element_type))
            return instruction(ONE, wide, [row.alone(number)])

        return make

    parts = ((left(0), right(EVEN)), (left(1), right(ODD)))
    return k_groups.accumulate(tile, k_groups.Step(PAIR, parts, multiply_add))
