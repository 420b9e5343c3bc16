"""8-bit integers by dot products of four (VNNI, AVX-VNNI, AVX-VNNI-INT8, Arm dotprod).

Reference loop, k in fours; the sums are i32 and wrap:

    for k...: for r in rows: for c in columns:
        acc[r][c] += sum over g < 4 of left[r][k + g] * right[k + g][c]

vpdpbusd multiplies unsigned by signed numbers, in either role.  Where both operands
are alike, the left one's sign bits are inverted and the panel's last step, sums of its
columns as i32, takes back what that adds (weights/panels.py).
"""

from __future__ import annotations

from collections.abc import Callable

from nanoloom.mlir import arith, ir, vector
from nanoloom.target.instructions.choose import DotUse
from nanoloom.vector.access import index
from nanoloom.vector.nanokernel import guarded_sums, k_groups
from nanoloom.vector.nanokernel.instructions import dot
from nanoloom.vector.nanokernel.operands.guarded_lhs import (
    Fill,
    GuardedLhs,
    GuardedRead,
)
from nanoloom.vector.nanokernel.operands.packed_panel import PackedPanel
from nanoloom.vector.nanokernel.tile.tile import Tile

FOUR = 4
SIGN_BITS = 0x80808080 - (1 << 32)


def accumulate(tile: Tile, use: DotUse) -> list[ir.Value]:
    """Emit the loops; gives rows * vectors accumulators of i32."""
    i8, i32 = (ir.IntegerType.get_signless(bits) for bits in (8, 32))
    wide = ir.VectorType.get([tile.lanes], i32)
    bytes_of = ir.VectorType.get([tile.lanes * FOUR], i8)

    def spread(group: ir.Value) -> ir.Value:
        lanes = k_groups.spread(group, tile.lanes, i32)
        if use.flipped:
            bits = vector.broadcast(wide, arith.constant(i32, SIGN_BITS))
            lanes = arith.xori(lanes, bits)
        return vector.bitcast(bytes_of, lanes)

    def product(sums: ir.Value, one: ir.Value, other: ir.Value) -> ir.Value:
        pair = (other, one) if use.swapped else (one, other)
        return dot(use.dot, sums, *pair)

    def step_of(read: Callable[[k_groups.Row], ir.Value]) -> k_groups.Step:
        def left(row: k_groups.Row) -> ir.Value:
            return spread(read(row))

        return k_groups.Step(FOUR, ((left, lambda panel: panel),), product)

    def family(read: GuardedRead | Fill, rows: list[ir.Value]) -> guarded_sums.Through:
        return k_groups.Sums(tile, step_of(read.group), rows).through

    start, lhs = corrected(tile, use), GuardedLhs.of(tile)
    if lhs is None or not lhs.in_groups:
        return k_groups.accumulate(tile, step_of(k_groups.Row.together), start)
    adds = use.flipped or lhs.number != "0"
    return guarded_sums.accumulate(tile, lhs, family, start, adds=adds)


def corrected(tile: Tile, use: DotUse) -> list[ir.Value]:
    """The sums before the first step, less what inverted sign bits add to them."""
    start = k_groups.starts(tile)
    if not use.flipped:
        return start
    shape = tile.shape
    panel = PackedPanel.of(tile, FOUR)
    ivs = tile.ivs(index(0), index(0))
    ivs[shape.reduced[-1]] = index(-(-shape.extents[shape.reduced[-1]] // FOUR))
    kind = ir.VectorType(start[0].type)
    vectors = tile.plan.vectors
    less = [vector.bitcast(kind, panel.read(ivs, v)) for v in range(vectors)]
    return [arith.addi(s, less[i % vectors]) for i, s in enumerate(start)]
