"""Bits that differ: xor and a count of ones, the products of binary networks.

Reference loop, k in fours of bytes, which are numbers of eight bits; the sums are i32:

    for k...: for r in rows: for c in columns:
        acc[r][c] += sum over g < 4 of ones(left[r][k + g] ^ right[k + g][c])

Where the target counts the ones of words (vpopcntd), a step is that.  Elsewhere they
are counted byte by byte (pshufb on x86, cnt on Arm) and added up in bytes, at most 31
times eight of them; behind each such round the four bytes of a lane are added to its
sum.
"""

from __future__ import annotations

from math import prod

from nanoloom.mlir import arith, ir, math, vector
from nanoloom.vector.access import add, index
from nanoloom.vector.nanokernel import groups
from nanoloom.vector.nanokernel.fma import vector_kind
from nanoloom.vector.nanokernel.sum_loops import counted, nest, unrolled, with_value
from nanoloom.vector.nanokernel.tile.tile import Tile

FOUR = 4  # bytes of a lane
ROUND = 255 // 8  # steps until a byte is full
STRIP = 28  # of a longer sum: a multiple of the steps that are unrolled
EVEN_BYTES, LOW_HALF = 0x00FF00FF, 0xFFFF


def accumulate(tile: Tile, words: bool) -> list[ir.Value]:
    """Emit the loops; gives rows * vectors accumulators of i32.

    words: whether ones are counted in lanes of 32 bits.
    """
    i8, i32 = (ir.IntegerType.get_signless(bits) for bits in (8, 32))
    element = i32 if words else i8
    kind = ir.VectorType.get([tile.lanes * (1 if words else FOUR)], element)

    def left(row: groups.Row) -> ir.Value:
        return groups.spread(row.together(), tile.lanes, element)

    def right(panel: ir.Value) -> ir.Value:
        return vector.bitcast(kind, panel)

    step = groups.Step(FOUR, ((left, right),), add_differing)
    if words:
        return groups.accumulate(tile, step)
    rounds = Rounds(tile, groups.Sums(tile, step), kind)
    ivs = tile.ivs(index(0), index(0))
    return rounds.through(list(tile.shape.reduced), ivs, groups.starts(tile))


def add_differing(sums: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
    """The sums and the number of bits that differ, lane by lane."""
    return arith.addi(sums, math.ctpop(arith.xori(left, right)))


class Rounds:
    """The loops of a tile, its sums in bytes for as long as those hold them."""

    def __init__(self, tile: Tile, made: groups.Sums, kind: ir.VectorType) -> None:
        self.tile, self.made, self.kind = tile, made, kind

    def through(
        self, dims: list[int], ivs: list[ir.Value], sums: list[ir.Value]
    ) -> list[ir.Value]:
        """Loops over these dimensions, in rounds as long as possible."""
        dim, *inner = dims
        extent = self.tile.shape.extents[dim]
        if self.steps(dims) <= ROUND:
            return self.one(dims, ivs, sums)
        if not inner:
            return self.strips(dim, ivs, sums)

        def inside(place: ir.Value, now: list[ir.Value]) -> list[ir.Value]:
            return self.through(inner, with_value(ivs, dim, place), now)

        return (
            counted(extent, 1, sums, inside) if extent > 1 else inside(index(0), sums)
        )

    def steps(self, dims: list[int]) -> int:
        """Of a sum over these dimensions, the last one's in groups."""
        *outer, deepest = (self.tile.shape.extents[d] for d in dims)
        return prod(outer) * -(-deepest // FOUR)

    def one(
        self, dims: list[int], ivs: list[ir.Value], sums: list[ir.Value]
    ) -> list[ir.Value]:
        """A round: sums in bytes that begin with zeros, then added up."""
        zeros = self.zeros(len(sums))
        made = nest(self.tile, dims, ivs, zeros, self.made.whole, self.made.innermost)
        return self.added(sums, made)

    def strips(
        self, dim: int, ivs: list[ir.Value], sums: list[ir.Value]
    ) -> list[ir.Value]:
        """The innermost dimension in rounds of STRIP groups, then what is left."""
        groups_, rest = divmod(self.tile.shape.extents[dim], FOUR)
        whole = groups_ // STRIP * STRIP

        def strip(place: ir.Value, now: list[ir.Value], count: int) -> list[ir.Value]:
            def step(here: list[ir.Value], bytes_: list[ir.Value]) -> list[ir.Value]:
                at = with_value(here, dim, add(place, here[dim]))
                return self.made.whole(at, bytes_)

            zeros, many = self.zeros(len(now)), self.tile.plan.unroll
            made = unrolled(count, many, dim, ivs, zeros, step)
            if count < STRIP and rest:
                made = self.made.products(ivs, index(groups_), rest, made)
            return self.added(now, made)

        sums = counted(whole, STRIP, sums, lambda at, now: strip(at, now, STRIP))
        left = groups_ - whole
        return strip(index(whole), sums, left) if left or rest else sums

    def zeros(self, count: int) -> list[ir.Value]:
        """Sums in bytes at the beginning of a round."""
        zero = arith.constant(self.kind.element_type, 0)
        return [vector.broadcast(self.kind, zero)] * count

    def added(self, sums: list[ir.Value], bytes_: list[ir.Value]) -> list[ir.Value]:
        """The sums, and the bytes of each lane."""
        wide = vector_kind(self.tile)
        pairs = zip(sums, bytes_, strict=True)
        return [arith.addi(sum_, four_bytes(wide, each)) for sum_, each in pairs]


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
