"""8-bit integers by products of 16-bit pairs (vpmaddwd: SSE2, AVX2, AVX-512).

Reference loop, k in fours; the sums are i32 and wrap:

    for k...: for r in rows: for c in columns:
        acc[r][c] += left[r][k] * right[k][c] + left[r][k + 2] * right[k + 2][c]
        acc[r][c] += left[r][k + 1] * right[k + 1][c] + left[r][k + 3] * ...

The bytes of a lane with even k become a pair of 16-bit numbers by shifts within it, and
so do the others; both operands alike: nothing crosses lanes.  A pair of products
is below 2^17 and exact.
"""

from __future__ import annotations

from collections.abc import Callable

from nanoloom.mlir import arith, ir, vector
from nanoloom.vector.nanokernel import groups
from nanoloom.vector.nanokernel.instructions import instruction
from nanoloom.vector.nanokernel.tile import Tile

FOUR = 4
BYTE = 8  # bits
LOWER = 0x00FF


def accumulate(tile: Tile, signed: tuple[bool, bool], function: str) -> list[ir.Value]:
    """Emit the loops; gives rows * vectors accumulators of i32.

    signed: whether the left and the right operand are.  function: vpmaddwd.
    """
    i32 = ir.IntegerType.get_signless(32)

    def product(sums: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
        return arith.addi(sums, instruction(function, sums.type, [left, right]))

    def part(make: Callable[[ir.Value, bool], ir.Value]):  # type: ignore[no-untyped-def]
        def left(row: groups.Row) -> ir.Value:
            return make(groups.spread(row.together(), tile.lanes, i32), signed[0])

        return left, lambda panel: make(panel, signed[1])

    step = groups.Step(FOUR, (part(even), part(odd)), product)
    return groups.accumulate(tile, step)


def even(value: ir.Value, signed: bool) -> ir.Value:
    """Bytes 0, 2, ... as 16-bit numbers."""
    pairs = as_pairs(value)
    if not signed:
        return arith.andi(pairs, every(pairs.type, LOWER))
    return arith.shrsi(
        arith.shli(pairs, every(pairs.type, BYTE)), every(pairs.type, BYTE)
    )


def odd(value: ir.Value, signed: bool) -> ir.Value:
    """Bytes 1, 3, ... as 16-bit numbers."""
    pairs = as_pairs(value)
    shift = arith.shrsi if signed else arith.shrui
    return shift(pairs, every(pairs.type, BYTE))


def as_pairs(value: ir.Value) -> ir.Value:
    """The same bits as 16-bit numbers."""
    kind = ir.VectorType(value.type)
    i16 = ir.IntegerType.get_signless(16)
    bits = kind.shape[0] * kind.element_type.width  # type: ignore[attr-defined]
    return vector.bitcast(ir.VectorType.get([bits // 16], i16), value)


def every(kind: ir.Type, number: int) -> ir.Value:
    i16 = ir.IntegerType.get_signless(16)
    return vector.broadcast(kind, arith.constant(i16, number))
