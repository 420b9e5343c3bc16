"""Steps of a sum that one instruction multiplies and adds, in scalable vectors.

    sums[c] += a[k] * b[k, c] + ... + a[k + 3] * b[k + 3, c]

The rows of b are woven, so that four numbers of a column are in a lane; a's four are in
every lane.  A vector of sums is as many registers as there are numbers in a group, so
that rows of b are whole registers.  Weights are woven before (packed_reads.py): there
it is as many loads.  How many are a group the instruction says, and of what numbers.

Where the instruction takes no such signs, those of a are inverted, which adds to every
sum what a multiple of b's sums takes away again: those are added up beside the others,
as of a row of ones.  What is left of a sum, fewer steps, is multiplied one by one; of
woven weights as a group that has zeros beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nanoloom.kernels.linalg_query import Op, iterators
from nanoloom.kernels.nest import element
from nanoloom.mlir import arith, ir
from nanoloom.nest.extent import Lanes
from nanoloom.target.facts import Target
from nanoloom.target.instructions.choose import (
    MATRIX_ROWS,
    DotUse,
    scalable_dot,
    scalable_matrix,
)
from nanoloom.vector.access import Access, add, index
from nanoloom.vector.dot_operands import LANE, DotOperands, added, filled, place
from nanoloom.vector.extents import rounded_down
from nanoloom.vector.fmla_lane import LaneSteps, lane_steps
from nanoloom.vector.grouped_rows import GroupedRows, in_groups_of, parts_of
from nanoloom.vector.lane_values import Vector
from nanoloom.vector.mmla import MatrixSteps
from nanoloom.vector.nanokernel.k_groups import interleaved_panel
from nanoloom.vector.operand_loads import load_operand
from nanoloom.vector.stationary.dot_products import adds_products, refuse_instruction
from nanoloom.vector.tile_points import Point, Step
from nanoloom.vector.value_cache import ValueCache
from nanoloom.vector.vector_plan import VectorPlan
from nanoloom.vector.widths import vector_type

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile


@dataclass(frozen=True)
class DotSteps:
    """How a strip's innermost sum is added up.

    left, right: the inputs by their numbers, the right one's numbers in the lanes.
    depth: the dimension of the sum.  woven: whether groups lie together in memory.
    """

    use: DotUse
    left: int
    right: int
    depth: int
    woven: bool

    @property
    def name(self) -> str:
        return self.use.dot.name

    @property
    def group(self) -> int:
        """Steps of the sum that are one."""
        return self.use.dot.group

    def columns(self, strip: RegisterTile, points: list[Point]) -> dict[object, Point]:
        """The points of one row, by where they are along the vectors; none where signs
        are as they are."""
        found: dict[object, Point] = {}
        for point in points if self.use.flipped else ():
            found.setdefault(place(strip, point), point)
        return found

    def begun(
        self, strip: RegisterTile, points: list[Point], start: list[ir.Value]
    ) -> list[ir.Value]:
        """What sums begin with, those of ones behind them."""
        count = len(self.columns(strip, points))
        return [*start, *(filled(value.type, 0) for value in start[:count])]

    def finished(
        self, strip: RegisterTile, points: list[Point], made: list[ir.Value]
    ) -> list[ir.Value]:
        """The sums, less what inverted signs have added."""
        columns, count = self.columns(strip, points), len(points)
        if not columns:
            return made
        factor = filled(made[0].type, self.use.correction)
        less = [arith.muli(value, factor) for value in made[count:]]
        by_place = dict(zip(columns, less, strict=True))
        return [
            arith.addi(value, by_place[place(strip, point)])
            for value, point in zip(made[:count], points, strict=True)
        ]

    def step(
        self,
        strip: RegisterTile,
        at: ir.Value,
        points: list[Point],
        values: list[ir.Value],
        once: ValueCache,
        alone: bool = False,
    ) -> list[ir.Value]:
        """The sums with a group of steps added, those of ones behind them, too.

        alone: a single step, in its place of a group.
        """
        made: list[ir.Value] = []
        here, factors = [p.moved(self.depth, at) for p in points], self.factors(strip)
        factor = factors.alone if alone else factors.group
        for value, point in zip(values, here, strict=False):
            left = factor(point, at, once)
            for number, right in enumerate(self.registers(strip, point, once)):
                value = added(self.use, value, left, right, number)
            made.append(value)
        rest = values[len(points) :]
        columns = self.columns(strip, here) if rest else {}
        for value, point in zip(rest, columns.values(), strict=True):
            ones = factors.one(at) if alone else factors.ones()
            for number, right in enumerate(self.registers(strip, point, once)):
                value = added(self.use, value, ones, right, number)
            made.append(value)
        return made

    def registers(
        self, strip: RegisterTile, point: Point, once: ValueCache
    ) -> list[ir.Value]:
        """Rows of the right operand as registers with a group of each column."""
        kind = self.bytes_of(strip)
        rows = GroupedRows(strip, self.right, self.depth, self.group, kind)
        where = (
            rows.place(point) if self.woven else strip.place(self.right, point, once)
        )
        key = self.use, where
        if key not in once.made:
            made = (
                list(rows.registers(point)) if self.woven else self.weave(strip, point)
            )
            once.made[key] = [Vector(part) for part in made]
        return [x.value for x in once.made[key] if isinstance(x, Vector)]

    def weave(self, strip: RegisterTile, point: Point) -> list[ir.Value]:
        """The same of rows that are loaded as they lie."""
        begin = point.ivs[self.depth]
        steps = (add(begin, index(g)) for g in range(self.group))
        rows = [
            load_operand(strip, self.right, point.moved(self.depth, k)) for k in steps
        ]
        wide = interleaved_panel([row.value for row in rows if isinstance(row, Vector)])
        return parts_of(wide, self.bytes_of(strip))

    def factors(self, strip: RegisterTile) -> DotOperands:
        kind = self.bytes_of(strip)
        return DotOperands(strip, self.left, self.use, kind, self.group)

    def bytes_of(self, strip: RegisterTile) -> ir.VectorType:
        """A register of the right operand's numbers."""
        lanes = Lanes(self.use.dot.bits // LANE * self.group, scalable=True)
        return vector_type(lanes, strip.inputs[self.right].element)


SeveralSteps = DotSteps | LaneSteps | MatrixSteps


def dot_steps(
    op: Op, plan: VectorPlan, strip: RegisterTile, target: Target
) -> SeveralSteps | None:
    """The steps of the instruction that a stage of scalable vectors along its columns
    is to have; None where none is said.

    Raises Error where it does not multiply what lies so.
    """
    if not plan.instruction or iterators(op)[plan.axis] == "reduction":
        return None
    found = steps_of(op, plan, strip, target)
    if found is None or found.name != plan.instruction:
        refuse_instruction(plan.instruction)
    return found


def steps_of(
    op: Op, plan: VectorPlan, strip: RegisterTile, target: Target
) -> SeveralSteps | None:
    """The steps that some instruction adds at once, None where nothing multiplies
    groups, or none of them lies together."""
    if not plan.lanes.scalable or iterators(op)[plan.axis] == "reduction":
        return None
    if not adds_products(op) or len(strip.inputs) != 2:
        return None
    kinds = [x.access(plan.axis) for x in strip.inputs]
    if Access.UNIFORM not in kinds:
        return None
    left = kinds.index(Access.UNIFORM)
    types, x = (element(op, left), element(op, 1 - left)), strip.inputs[1 - left]
    use, pair = scalable_dot(target, *types), scalable_matrix(target, *types)
    (*_, deepest), steps = strip.reduced, MATRIX_ROWS * (use.dot.group if use else 1)
    grouped = strip.inputs[left].access(deepest) is Access.CONTIGUOUS
    if grouped and in_groups_of(x, plan.axis, deepest, steps):
        if pair is None or plan.lanes.count % (pair.dot.bits // LANE):
            return None
        return MatrixSteps(pair, left, 1 - left, deepest)
    if use is None:
        return lane_steps(op, plan, strip, target)
    if not grouped:
        return None
    group, lanes = use.dot.group, use.dot.bits // LANE
    woven = in_groups_of(x, plan.axis, deepest, group)
    if not woven and kinds[1 - left] is not Access.CONTIGUOUS:
        return None
    whole = plan.lanes.count % (lanes if woven else lanes * group) == 0
    grouped = woven or strip.unrolled.get(deepest, 1) % group == 0
    found = DotSteps(use, left, 1 - left, deepest, woven)
    return found if whole and grouped else None


def summed(
    strip: RegisterTile,
    points: list[Point],
    start: list[ir.Value],
    step: Step,
    once: ValueCache,
) -> list[ir.Value]:
    """The results of some points together, from what they begin with."""
    dots = dots_of(strip)
    if dots is None:
        return strip.accumulate(strip.reduced, points, start, step, once)
    begun = dots.begun(strip, points, start)
    made = strip.accumulate(strip.reduced, points, begun, step, once)
    return dots.finished(strip, points, made)


def in_groups(
    strip: RegisterTile,
    steps: tuple[list[int], ir.Value, int],
    points: list[Point],
    values: list[ir.Value],
    once: ValueCache,
) -> tuple[int, list[ir.Value]]:
    """As many whole groups as there are in so many steps: how many steps those are,
    and the sums with them.

    steps: the dimensions of the sum from these on, where they begin, and their number.
    """
    dots, (dims, begin, count) = dots_of(strip), steps
    if dots is None or len(dims) > 1:
        return 0, values
    whole = count // dots.group * dots.group
    for number in range(0, whole, dots.group):
        values = dots.step(strip, add(begin, index(number)), points, values, once)
    if not dots.woven:
        return whole, values
    for number in range(whole, count):
        at = add(begin, index(number))
        values = dots.step(strip, at, points, values, once, alone=True)
    return count, values


def cuts(
    strip: RegisterTile, dims: list[int], extent: ir.Value, count: int
) -> Iterator[tuple[ir.Value, ir.Value, int]]:
    """The parts of a dimension with as many steps behind each other: so many as a
    schedule says, then groups, then single ones."""
    dots, begin = dots_of(strip), index(0)
    group = dots.group if dots and len(dims) == 1 else 1
    for steps in dict.fromkeys((count, group, 1)):
        end = rounded_down(extent, steps)
        yield begin, end, steps
        begin = end


def dots_of(strip: RegisterTile) -> SeveralSteps | None:
    """What adds several steps at once; nothing for single numbers."""
    if isinstance(strip.dots, LaneSteps) and strip.jam.get(strip.dim, 1) == 1:
        return None  # LLVM gives their registers to sums, and spills the factors
    return strip.dots if strip.lanes.scalable else None
