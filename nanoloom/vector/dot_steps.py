"""Steps of a sum that one instruction multiplies and adds, in scalable vectors.

    sums[c] += a[k] * b[k, c] + ... + a[k + 3] * b[k + 3, c]

The rows of b are woven, so that four numbers of a column are in a lane; a's four are in
every lane.  A vector of sums is as many registers as there are numbers in a group, so
that rows of b are whole registers.

Where the instruction takes no such signs, those of a are inverted, which adds to every
sum what a multiple of b's sums takes away again: those are added up beside the others,
as of a row of ones.  What is left of a sum, fewer steps, is multiplied one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nanoloom.kernels.nest import element
from nanoloom.kernels.structure import Op, iterators
from nanoloom.mlir import arith, ir, vector
from nanoloom.nest.extent import Lanes
from nanoloom.target.dots import GROUP, DotUse, scalable_dot
from nanoloom.target.facts import Target
from nanoloom.vector.access import Access, add, index, written
from nanoloom.vector.lane_values import Vector
from nanoloom.vector.nanokernel.groups import interleaved
from nanoloom.vector.nanokernel.instructions import emit
from nanoloom.vector.once import Once
from nanoloom.vector.points import Point, Step
from nanoloom.vector.stationary.dot_products import adds_products
from nanoloom.vector.vectorize import VectorPlan
from nanoloom.vector.widths import vector_type

if TYPE_CHECKING:
    from nanoloom.vector.strip import Strip

SIGN_BITS = 0x80808080 - (1 << 32)
LANE = 32  # bits
Place = tuple[int, ir.Value]  # a dimension, and where it begins there


@dataclass(frozen=True)
class DotSteps:
    """How a strip's innermost sum is added up.

    left, right: the inputs by their numbers, the right one's numbers in the lanes.
    """

    use: DotUse
    left: int
    right: int

    @property
    def group(self) -> int:
        """Steps of the sum that are one."""
        return GROUP[self.use.dot.right]

    def columns(self, strip: Strip, points: list[Point]) -> dict[object, Point]:
        """The points of one row, by where they are along the vectors."""
        found: dict[object, Point] = {}
        for point in points:
            found.setdefault(place(strip, point), point)
        return found

    def step(
        self,
        strip: Strip,
        at: Place,
        points: list[Point],
        values: list[ir.Value],
        once: Once,
    ) -> list[ir.Value]:
        """The sums with a group of steps added, those of ones behind them, too."""
        made: list[ir.Value] = []
        for value, point in zip(values, points, strict=False):
            right = self.woven(strip, at, point, once)
            made.append(self.added(value, self.factor(strip, at, point, once), right))
        rest = values[len(points) :]
        columns = self.columns(strip, points) if rest else {}
        for value, point in zip(rest, columns.values(), strict=True):
            ones = filled(self.bytes_of(strip), 1)
            made.append(self.added(value, ones, self.woven(strip, at, point, once)))
        return made

    def added(
        self, value: ir.Value, factor: ir.Value, woven: list[ir.Value]
    ) -> ir.Value:
        """A vector of sums with the products of a group, register by register."""
        kind = ir.VectorType(value.type)
        many = kind.shape[0] // len(woven)
        part = vector_type(Lanes(many, scalable=True), kind.element_type)
        for number, right in enumerate(woven):
            sums = vector.scalable_extract(part, value, number * many)
            pair = (right, factor) if self.use.swapped else (factor, right)
            sums = emit(self.use.dot.function, part, [sums, *pair])
            value = vector.scalable_insert(sums, value, number * many)
        return value

    def woven(
        self, strip: Strip, at: Place, point: Point, once: Once
    ) -> list[ir.Value]:
        """Rows of the right operand as registers with a group of each column."""
        dim, begin = at
        key = self.use, strip.place(self.right, point.moved(dim, begin))
        if key not in once.made:
            steps = (add(begin, index(g)) for g in range(self.group))
            rows = [strip.load(self.right, point.moved(dim, k)) for k in steps]
            wide = interleaved([row.value for row in rows if isinstance(row, Vector)])
            kind, many = self.bytes_of(strip), strip.lanes.count
            width = kind.shape[0]
            count = many * self.group // width
            parts = [
                vector.scalable_extract(kind, wide, n * width) for n in range(count)
            ]
            once.made[key] = [Vector(part) for part in parts]
        return [x.value for x in once.made[key] if isinstance(x, Vector)]

    def factor(self, strip: Strip, at: Place, point: Point, once: Once) -> ir.Value:
        """A group of the left operand's numbers in every lane."""
        dim, begin = at
        here = point.moved(dim, begin)
        key = self.use, strip.place(self.left, here)
        if key not in once.made:
            x, kind = strip.inputs[self.left], self.bytes_of(strip)
            i32 = ir.IntegerType.get_signless(LANE)
            group = ir.VectorType.get([self.group], kind.element_type)
            numbers = vector.load(group, x.buffer, x.indices(here.ivs))
            one = vector.bitcast(ir.VectorType.get([1], i32), numbers)
            lanes = vector_type(Lanes(kind.shape[0] // self.group, scalable=True), i32)
            wide = vector.broadcast(lanes, vector.extract(one, [], [0]))
            if self.use.flipped:
                wide = arith.xori(wide, filled(lanes, SIGN_BITS))
            once.made[key] = [Vector(vector.bitcast(kind, wide))]
        (made,) = once.made[key]
        assert isinstance(made, Vector)
        return made.value

    def bytes_of(self, strip: Strip) -> ir.VectorType:
        """A register of the right operand's numbers."""
        lanes = Lanes(self.use.dot.bits // LANE * self.group, scalable=True)
        return vector_type(lanes, strip.inputs[self.right].element)


def dot_steps(
    op: Op, plan: VectorPlan, strip: Strip, target: Target
) -> DotSteps | None:
    """The instruction for a stage of scalable vectors along its columns; None where
    nothing multiplies groups, or none of them lies together."""
    if not plan.lanes.scalable or iterators(op)[plan.axis] == "reduction":
        return None
    if not adds_products(op) or len(strip.inputs) != 2:
        return None
    kinds = [x.access(plan.axis) for x in strip.inputs]
    if {*kinds} != {Access.CONTIGUOUS, Access.UNIFORM}:
        return None
    left, right = kinds.index(Access.UNIFORM), kinds.index(Access.CONTIGUOUS)
    use = scalable_dot(target, element(op, left), element(op, right))
    *_, deepest = strip.reduced
    if use is None or strip.inputs[left].access(deepest) is not Access.CONTIGUOUS:
        return None
    found = DotSteps(use, left, right)
    whole = plan.lanes.count % (use.dot.bits // LANE * found.group) == 0
    grouped = strip.unrolled.get(deepest, 1) % found.group == 0
    return found if whole and grouped else None


def summed(
    strip: Strip,
    points: list[Point],
    start: list[ir.Value],
    step: Step,
    once: Once,
) -> list[ir.Value]:
    """The results of some points together, from what they begin with."""
    dots, count = dots_of(strip), len(points)
    columns = dots.columns(strip, points) if dots and dots.use.flipped else {}
    ones = [filled(value.type, 0) for value in start[: len(columns)]]
    made = strip.accumulate(strip.reduced, points, [*start, *ones], step, once)
    if not dots or not columns:
        return made
    kind = ir.VectorType(start[0].type)
    factor = filled(kind, dots.use.correction)
    less = [arith.muli(value, factor) for value in made[count:]]
    by_place = dict(zip(columns, less, strict=True))
    return [
        arith.addi(value, by_place[place(strip, point)])
        for value, point in zip(made[:count], points, strict=True)
    ]


def in_groups(
    strip: Strip,
    steps: tuple[list[int], ir.Value, int],
    points: list[Point],
    values: list[ir.Value],
    once: Once,
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
        here = dims[0], add(begin, index(number))
        values = dots.step(strip, here, points, values, once)
    return whole, values


def dots_of(strip: Strip) -> DotSteps | None:
    """What adds several steps at once; nothing for single numbers."""
    return strip.dots if strip.lanes.scalable else None


def place(strip: Strip, point: Point) -> object:
    """Where a point is along the vectors."""
    return written(point.ivs[strip.dim])


def filled(kind: ir.Type, number: int) -> ir.Value:
    """A vector of one number."""
    element_type = ir.VectorType(kind).element_type
    return vector.broadcast(kind, arith.constant(element_type, number))
