"""bf16 on any vector unit: a pair in a lane is two f32 numbers but for a shift.

Reference loop, k in pairs; the sums are f32, products are exact in it:

    for k...: for r in rows: for c in columns:
        acc[r][c] += f32(left[r][k]) * f32(right[k][c])
        acc[r][c] += f32(left[r][k + 1]) * f32(right[k + 1][c])

The number with even k is the lower half of a lane: f32(bits << 16).  The other is the
upper half: f32(bits & 0xffff0000).
"""

from __future__ import annotations

from nanoloom.mlir import arith, ir, vector
from nanoloom.vector.nanokernel import groups
from nanoloom.vector.nanokernel.tile import Tile

PAIR = 2
HALF = 16  # bits
UPPER = 0xFFFF0000 - (1 << 32)


def accumulate(tile: Tile) -> list[ir.Value]:
    """Emit the loops; gives rows * vectors accumulators of f32."""
    i32 = ir.IntegerType.get_signless(32)

    def lanes_of(row: groups.Row) -> ir.Value:
        return groups.spread(row.together(), tile.lanes, i32)

    parts = (
        (lambda row: even(lanes_of(row)), even),
        (lambda row: odd(lanes_of(row)), odd),
    )
    return groups.accumulate(tile, groups.Step(PAIR, parts, multiply_add))


def multiply_add(sums: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
    return vector.fma(left, right, sums)


def even(value: ir.Value) -> ir.Value:
    """The lower half of every lane as f32."""
    lanes = as_lanes(value)
    shift = vector.broadcast(lanes.type, arith.constant(lane_type(), HALF))
    return as_floats(arith.shli(lanes, shift))


def odd(value: ir.Value) -> ir.Value:
    """The upper half of every lane as f32."""
    lanes = as_lanes(value)
    upper = vector.broadcast(lanes.type, arith.constant(lane_type(), UPPER))
    return as_floats(arith.andi(lanes, upper))


def lane_type() -> ir.Type:
    return ir.IntegerType.get_signless(32)


def as_lanes(value: ir.Value) -> ir.Value:
    """Pairs of bf16 as lanes of 32 bits."""
    kind = ir.VectorType(value.type)
    if kind.element_type == lane_type():
        return value
    return vector.bitcast(
        ir.VectorType.get([kind.shape[0] // PAIR], lane_type()), value
    )


def as_floats(lanes: ir.Value) -> ir.Value:
    kind = ir.VectorType(lanes.type)
    return vector.bitcast(ir.VectorType.get(kind.shape, ir.F32Type.get()), lanes)
