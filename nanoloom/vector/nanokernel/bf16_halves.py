"""bf16 on any vector unit: a pair in a lane is two f32 numbers but for a shift.

Reference loop, k in pairs; the sums are f32, products are exact in it:

    for k...: for r in rows: for c in columns:
        acc[r][c] += f32(left[r][k]) * f32(right[k][c])
        acc[r][c] += f32(left[r][k + 1]) * f32(right[k + 1][c])

Of the right operand the number with even k is the lower half of a lane: bits << 16.
The other is the upper half: bits & 0xffff0000.  The left operand's are f32 already.
In a row that is not packed they are even and odd columns (bf16_flat.py).
"""

from __future__ import annotations

from nanoloom.mlir import arith, ir, vector
from nanoloom.vector.nanokernel import bf16_flat, k_groups
from nanoloom.vector.nanokernel.fma import numbers
from nanoloom.vector.nanokernel.operands.convert_lhs import convert_lhs, extended
from nanoloom.vector.nanokernel.tile.tile import Tile

PAIR = 2
HALF = 16  # bits
UPPER = 0xFFFF0000 - (1 << 32)


def accumulate(tile: Tile) -> list[ir.Value]:
    """Emit the loops; gives rows * vectors accumulators of f32."""
    f32 = ir.F32Type.get()
    wide = ir.VectorType.get([tile.lanes], f32)
    convert_lhs(tile, f32)
    if not tile.plan.packed:
        return bf16_flat.accumulate(tile, even, odd, numbers(tile, wide))

    def left(number: int) -> k_groups.PrepareRow:
        return lambda row: vector.broadcast(wide, extended(f32, row.number(number)))

    parts = ((left(0), even), (left(1), odd))
    return k_groups.accumulate(tile, k_groups.Step(PAIR, parts, multiply_add))


def multiply_add(sums: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
    return vector.fma(left, right, sums)


def even(pairs: ir.Value) -> ir.Value:
    """The lower half of every lane as f32."""
    lanes = as_lanes(pairs)
    return as_floats(arith.shli(lanes, every(lanes.type, HALF)))


def odd(pairs: ir.Value) -> ir.Value:
    """The upper half of every lane as f32."""
    lanes = as_lanes(pairs)
    return as_floats(arith.andi(lanes, every(lanes.type, UPPER)))


def as_lanes(pairs: ir.Value) -> ir.Value:
    """Pairs of bf16 as lanes of 32 bits."""
    i32 = ir.IntegerType.get_signless(32)
    count = ir.VectorType(pairs.type).shape[0] // PAIR
    return vector.bitcast(ir.VectorType.get([count], i32), pairs)


def as_floats(lanes: ir.Value) -> ir.Value:
    kind = ir.VectorType(lanes.type)
    return vector.bitcast(ir.VectorType.get(kind.shape, ir.F32Type.get()), lanes)


def every(kind: ir.Type, number: int) -> ir.Value:
    i32 = ir.IntegerType.get_signless(32)
    return vector.broadcast(kind, arith.constant(i32, number))
