"""Bits that differ: xor and a count of ones, the products of binary networks.

Reference loop, k in fours of bytes, which are numbers of eight bits; the sums are i32:

    for k...: for r in rows: for c in columns:
        acc[r][c] += sum over g < 4 of ones(left[r][k + g] ^ right[k + g][c])

Where the target counts the ones of words (vpopcntd), a step is that.  Elsewhere they
are counted byte by byte (pshufb on x86, cnt on Arm) and added up in bytes
(byte_accumulators.py); behind each round the four bytes of a lane are added to its sum.
"""

from __future__ import annotations

from nanoloom.mlir import arith, ir, math, vector
from nanoloom.vector.nanokernel import k_groups
from nanoloom.vector.nanokernel.byte_accumulators import ROUND, ByteSums
from nanoloom.vector.nanokernel.fma import vector_kind
from nanoloom.vector.nanokernel.tile.tile import Tile

FOUR = 4  # bytes of a lane
EVEN_BYTES, LOW_HALF = 0x00FF00FF, 0xFFFF


def accumulate(tile: Tile, words: bool) -> list[ir.Value]:
    """Emit the loops; gives rows * vectors accumulators of i32.

    words: whether ones are counted in lanes of 32 bits.
    """
    i8, i32 = (ir.IntegerType.get_signless(bits) for bits in (8, 32))
    element = i32 if words else i8
    kind = ir.VectorType.get([tile.lanes * (1 if words else FOUR)], element)

    def left(row: k_groups.Row) -> ir.Value:
        return k_groups.spread(row.together(), tile.lanes, element)

    def right(panel: ir.Value) -> ir.Value:
        return vector.bitcast(kind, panel)

    most = 0 if words else ROUND
    step = k_groups.Step(FOUR, ((left, right),), add_differing, most)
    if words:
        return k_groups.accumulate(tile, step)
    made, wide = k_groups.Sums(tile, step, tile.row_indices), vector_kind(tile)

    def rest(ivs: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
        dim = tile.shape.reduced[-1]
        return made.products(ivs, ivs[dim], tile.shape.extents[dim] % FOUR, sums)

    def added(sums: list[ir.Value], bytes_: list[ir.Value]) -> list[ir.Value]:
        pairs = zip(sums, bytes_, strict=True)
        return [arith.addi(sum_, four_bytes(wide, each)) for sum_, each in pairs]

    start = k_groups.starts(tile)
    return ByteSums(
        tile, kind, len(start), FOUR, made.whole, made.innermost, rest, added
    ).accumulate(start)


def add_differing(sums: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
    """The sums and the number of bits that differ, lane by lane."""
    return arith.addi(sums, math.ctpop(arith.xori(left, right)))


def four_bytes(wide: ir.VectorType, bytes_: ir.Value) -> ir.Value:
    """The sum of the four bytes of each lane of 32 bits."""

    def number(value: int) -> ir.Value:
        return vector.broadcast(wide, arith.constant(wide.element_type, value))

    lanes = vector.bitcast(wide, bytes_)
    odd = arith.shrui(lanes, number(8))
    mask = number(EVEN_BYTES)
    pairs = arith.addi(arith.andi(lanes, mask), arith.andi(odd, mask))
    high = arith.shrui(pairs, number(16))
    return arith.addi(arith.andi(pairs, number(LOW_HALF)), high)
