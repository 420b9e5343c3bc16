"""Steps of a sum whose factors are loaded at once, in scalable vectors: of SVE.

    for k by 4: for r in rows: four[r] = left[r][k..k + 4], in every 128 bits
        for g in 0..4: for c, r: sums[r][c] += four[r][g] * right[k + g][c]

A load for four steps of a row, in place of four, each with an address of its own: LD1RW
reaches 63 numbers.  As of one width (schedule/lane_factors.py); the columns are loaded
one by one, in the room that the rows' numbers leave.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from nanoloom.kernels.linalg_query import Op
from nanoloom.kernels.nest import element
from nanoloom.mlir import ir, llvm, vector
from nanoloom.schedule.lane_factors import is_wide_room, wide_lane_factors
from nanoloom.target.facts import Target
from nanoloom.target.instructions.aarch64 import LANE_PRODUCT, REPEATED_QUAD
from nanoloom.vector.access import Access, add, index
from nanoloom.vector.lane_values import Vector
from nanoloom.vector.nanokernel.instructions import emit_with
from nanoloom.vector.tile_points import Point
from nanoloom.vector.value_cache import ValueCache
from nanoloom.vector.vector_plan import VectorPlan

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile


@dataclass(frozen=True)
class LaneSteps:
    """How a strip's innermost sum is added up.

    left, right: the inputs by their numbers, the right one's numbers in the lanes.
    depth: the dimension of the sum.  group: steps whose factors are one load.
    """

    left: int
    right: int
    depth: int
    group: int
    woven: bool = False
    name: str = LANE_PRODUCT.name

    def begun(
        self, strip: RegisterTile, points: list[Point], start: list[ir.Value]
    ) -> list[ir.Value]:
        del strip, points
        return start

    def finished(
        self, strip: RegisterTile, points: list[Point], made: list[ir.Value]
    ) -> list[ir.Value]:
        del strip, points
        return made

    def step(
        self,
        strip: RegisterTile,
        at: ir.Value,
        points: list[Point],
        values: list[ir.Value],
        once: ValueCache,
        alone: bool = False,
    ) -> list[ir.Value]:
        """The sums with a group of steps added."""
        assert not alone
        made = list(values)
        here = [point.moved(self.depth, at) for point in points]
        numbers = [self.numbers(strip, point, once) for point in here]
        for lane in range(self.group):
            steps = [p.moved(self.depth, add(at, index(lane))) for p in points]
            for column in columns(strip, self.right, steps, once):
                right = strip.lanes_of(self.right, steps[column[0]], once)
                assert isinstance(right, Vector)
                for n in column:
                    made[n] = added(made[n], right.value, numbers[n], lane)
                # No load comes in front of this: LLVM would run out of registers.
                llvm.InlineAsmOp(None, [], "", "~{memory}", has_side_effects=True)
        return made

    def numbers(self, strip: RegisterTile, point: Point, once: ValueCache) -> ir.Value:
        """A row's of all steps of a group, in every 128 bits of a register."""
        key = REPEATED_QUAD, strip.place(self.left, point, once)
        if key not in once.made:
            x = strip.inputs[self.left]
            few = ir.VectorType.get([self.group], x.element)
            read = vector.load(few, x.buffer, x.indices(point.ivs))
            kind = ir.VectorType.get([self.group], x.element, scalable=[True])
            wide = vector.scalable_insert(read, llvm.mlir_poison(kind), 0)
            made = emit_with(REPEATED_QUAD, kind, [wide], [0])
            once.made[key] = [Vector(made)]
        (found,) = once.made[key]
        assert isinstance(found, Vector)
        return found.value


def columns(
    strip: RegisterTile, right: int, points: list[Point], once: ValueCache
) -> list[list[int]]:
    """The points of each vector of the right operand, by their numbers."""
    found: dict[Hashable, list[int]] = {}
    for number, point in enumerate(points):
        found.setdefault(strip.place(right, point, once), []).append(number)
    return list(found.values())


def added(value: ir.Value, right: ir.Value, numbers: ir.Value, lane: int) -> ir.Value:
    """A vector of sums with the products by one of the numbers."""
    return emit_with(LANE_PRODUCT, value.type, [value, right, numbers], [lane])


def lane_steps(
    op: Op, plan: VectorPlan, strip: RegisterTile, target: Target
) -> LaneSteps | None:
    """Of a sum of products of whole registers, if the schedule has as many steps behind
    each other as a row's numbers are loaded at once; else None."""
    group, (*_, deepest) = wide_lane_factors(target), strip.reduced
    if not group or {element(op, n) for n in range(3)} != {"f32"}:
        return None
    if plan.lanes.count != group or strip.unrolled.get(deepest, 1) % group:
        return None
    rows = prod(count for dim, count in strip.jam.items() if dim != strip.dim)
    if not is_wide_room(rows, strip.jam.get(strip.dim, 1), target):
        return None
    kinds = [x.access(plan.axis) for x in strip.inputs]
    if {*kinds} != {Access.UNIFORM, Access.CONTIGUOUS}:
        return None
    left = kinds.index(Access.UNIFORM)
    if strip.inputs[left].access(deepest) is not Access.CONTIGUOUS:
        return None
    return LaneSteps(left, 1 - left, deepest, group)
