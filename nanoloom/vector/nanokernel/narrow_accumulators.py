"""Sums that are kept in narrow numbers for as long as those hold them.

    for a round of steps: narrow[...] += ...
    sums += narrow; narrow = 0

A round is as many of the inner loops of a sum as those hold steps; a longer innermost
one is cut into parts of the same length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from nanoloom.ir.access import add, index
from nanoloom.ir.mlir import arith, ir, vector
from nanoloom.vector.emit_loops import emit_loop
from nanoloom.vector.nanokernel.reduction_loops import (
    Innermost,
    Step,
    nest,
    unrolled,
)
from nanoloom.vector.nanokernel.tile.tile import Tile
from nanoloom.vector.tile_points import with_value
from nanoloom.vector.widths import filled

Sums = list[ir.Value]


@dataclass(frozen=True)
class NarrowSums:
    """The loops of a tile.

    kind: of a vector of narrow sums, of which there are `count`.  group: of the last
    dimension's numbers, that a step takes.  most: steps that they hold.  step,
    innermost: as reduction_loops.nest has them.  rest: a step of the numbers that are
    no group, from loop variables on.  added: sums and the narrow ones of a round.
    """

    tile: Tile
    kind: ir.VectorType
    count: int
    group: int
    most: int
    step: Step
    innermost: Innermost
    rest: Step
    added: Callable[[Sums, Sums], Sums]

    def accumulate(self, sums: Sums) -> Sums:
        """The sums with all products added."""
        ivs = self.tile.ivs(index(0), index(0))
        return self.through(list(self.tile.shape.reduced), ivs, sums)

    def through(self, dims: list[int], ivs: list[ir.Value], sums: Sums) -> Sums:
        """Loops over these dimensions, in rounds as long as possible."""
        dim, *inner = dims
        extent = self.tile.shape.extents[dim]
        if self.steps(dims) <= self.most:
            return self.one(dims, ivs, sums)
        if not inner:
            return self.parts(dim, ivs, sums)

        def inside(place: ir.Value, now: Sums) -> Sums:
            return self.through(inner, with_value(ivs, dim, place), now)

        if extent == 1:
            return inside(index(0), sums)
        return emit_loop((0, extent), 1, sums, inside)

    def steps(self, dims: list[int]) -> int:
        """Of a sum over these dimensions, the last one's in groups."""
        *outer, deepest = (self.tile.shape.extents[d] for d in dims)
        return prod(outer) * -(-deepest // self.group)

    def one(self, dims: list[int], ivs: list[ir.Value], sums: Sums) -> Sums:
        """A round of whole loops."""
        made = nest(self.tile, dims, ivs, self.zeros(), self.step, self.innermost)
        return self.added(sums, made)

    def parts(self, dim: int, ivs: list[ir.Value], sums: Sums) -> Sums:
        """The innermost dimension in rounds of the same length, then what is left."""
        whole, rest = divmod(self.tile.shape.extents[dim], self.group)
        many = -(-whole // -(-whole // self.most))
        end = whole // many * many

        def part(place: ir.Value, now: Sums, steps: int) -> Sums:
            def step(here: list[ir.Value], narrow: Sums) -> Sums:
                at = with_value(here, dim, add(place, here[dim]))
                return self.step(at, narrow)

            unroll = self.tile.plan.unroll
            made = unrolled(steps, unroll, dim, ivs, self.zeros(), step)
            if steps < many and rest:
                made = self.rest(with_value(ivs, dim, index(whole)), made)
            return self.added(now, made)

        sums = emit_loop((0, end), many, sums, lambda at, now: part(at, now, many))
        left = whole - end
        return part(index(end), sums, left) if left or rest else sums

    def zeros(self) -> Sums:
        """Narrow sums at the beginning of a round."""
        return [filled(self.kind, 0)] * self.count


def lane_sums(wide: ir.Type, narrow: ir.Value) -> ir.Value:
    """The sum of the narrow numbers in each lane of a wider vector: of neighbours, then
    of theirs.  None is below 0."""
    word = ir.VectorType(wide).element_type
    bits = ir.VectorType(narrow.type).element_type.width  # type: ignore[attr-defined] - of numbers
    lanes, full = vector.bitcast(wide, narrow), word.width  # type: ignore[attr-defined] - of numbers

    while bits < full:
        odd, bits = arith.shrui(lanes, filled(wide, bits)), 2 * bits
        ones = sum((1 << bits // 2) - 1 << at for at in range(0, full, bits))
        mask = filled(wide, ones)
        lanes = arith.addi(arith.andi(lanes, mask), arith.andi(odd, mask))
    return lanes
