"""Sums of two rows at once: an instruction on matrices, in scalable vectors.

    sums[r, c] += a[r, k] * b[k, c] + ... + a[r, k + 7] * b[k + 7, c]    (2 x 2 of them)

Every 128 bits of a register have a matrix: of b some steps of two columns, as weights
are woven while compiling, of a as many of two rows, the same in all of them: eight of
bytes, four of bf16, two of f32, as the instruction says.  While they are added up, the
sums of two rows are interleaved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nanoloom.mlir import arith, ir, vector
from nanoloom.nest.extent import Lanes
from nanoloom.target.instructions.choose import MATRIX_ROWS, DotUse
from nanoloom.target.instructions.instruction import GROUP
from nanoloom.vector.dot_operands import LANE, DotOperands, added, filled, place
from nanoloom.vector.grouped_rows import GroupedRows
from nanoloom.vector.tile_points import Point
from nanoloom.vector.value_cache import ValueCache
from nanoloom.vector.widths import vector_type

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile

PAIR = 64  # bits of two sums
Pair = tuple[int, ...]  # two rows, or the last one


@dataclass(frozen=True)
class MatrixSteps:
    """How a strip's innermost sum is added up.

    left, right: the inputs by their numbers, the right one's numbers in the lanes.
    depth: the dimension of the sum.
    """

    use: DotUse
    left: int
    right: int
    depth: int
    woven: bool = True

    @property
    def name(self) -> str:
        return self.use.dot.name

    @property
    def group(self) -> int:
        """Steps of the sum that are one."""
        return self.use.dot.group

    def begun(
        self, strip: RegisterTile, points: list[Point], start: list[ir.Value]
    ) -> list[ir.Value]:
        """What the sums of pairs begin with."""
        made: list[ir.Value] = []
        for numbers in pairs(strip, points):
            one, *more = (start[number] for number in numbers)
            made.append(self.interleaved(one, more[0] if more else zeros(one)))
        return made

    def finished(
        self, strip: RegisterTile, points: list[Point], made: list[ir.Value]
    ) -> list[ir.Value]:
        """The sums of all points."""
        found: dict[int, ir.Value] = {}
        for numbers, both in zip(pairs(strip, points), made, strict=True):
            found |= zip(numbers, self.taken_apart(both), strict=False)
        return [found[number] for number in range(len(points))]

    def interleaved(self, one: ir.Value, other: ir.Value) -> ir.Value:
        """The sums of two rows: two columns of one, the same of the other.

        Where the instruction takes the columns first, single ones.
        """
        kind = ir.VectorType(one.type)
        both = Lanes(MATRIX_ROWS * kind.shape[0], scalable=True)
        if self.use.swapped:
            return vector.interleave(one, other)
        wide = [vector.bitcast(wide_type(kind), x) for x in (one, other)]
        whole = vector_type(both, kind.element_type)
        return vector.bitcast(whole, vector.interleave(*wide))

    def taken_apart(self, both: ir.Value) -> list[ir.Value]:
        """The sums of each row."""
        kind = ir.VectorType(both.type)
        if self.use.swapped:
            return list(vector.deinterleave(both))
        half = Lanes(kind.shape[0] // MATRIX_ROWS, scalable=True)
        rows = vector.deinterleave(vector.bitcast(wide_type(kind), both))
        return [vector.bitcast(vector_type(half, kind.element_type), x) for x in rows]

    def step(
        self,
        strip: RegisterTile,
        at: ir.Value,
        points: list[Point],
        values: list[ir.Value],
        once: ValueCache,
        alone: bool = False,
    ) -> list[ir.Value]:
        """The sums with a group of steps added.

        alone: a single step, in its place of a group.
        """
        kind = self.numbers_of(strip)
        rows = GroupedRows(strip, self.right, self.depth, self.group, kind)
        factors = DotOperands(strip, self.left, self.use, kind, self.group)
        factor = factors.alone if alone else factors.group
        here = [point.moved(self.depth, at) for point in points]
        made = dict(zip(pairs(strip, points), values, strict=True))
        left: dict[Pair, ir.Value] = {}
        for numbers in made:
            each = [factor(here[number], at, once) for number in numbers]
            left[numbers] = beside(*each) if len(each) > 1 else each[0]
        for column in columns(strip, points):
            # A register of the weight at a time: others are not held.
            for number, right in enumerate(rows.registers(here[column[0][0]])):
                for pair in column:
                    made[pair] = added(self.use, made[pair], left[pair], right, number)
        return list(made.values())

    def numbers_of(self, strip: RegisterTile) -> ir.VectorType:
        """A register of the right operand's numbers."""
        count = self.use.dot.bits // LANE * GROUP[self.use.dot.right]
        kind = strip.inputs[self.right].element
        return vector_type(Lanes(count, scalable=True), kind)


def columns(strip: RegisterTile, points: list[Point]) -> list[list[Pair]]:
    """The points of two rows each, by their numbers; those of the same columns
    together."""
    found: dict[object, list[int]] = {}
    for number, point in enumerate(points):
        found.setdefault(place(strip, point), []).append(number)
    return [
        [
            tuple(rows[first : first + MATRIX_ROWS])
            for first in range(0, len(rows), MATRIX_ROWS)
        ]
        for rows in found.values()
    ]


def pairs(strip: RegisterTile, points: list[Point]) -> list[Pair]:
    """All of them."""
    return [pair for column in columns(strip, points) for pair in column]


def beside(one: ir.Value, other: ir.Value) -> ir.Value:
    """The groups of two rows, in all matrices of a register."""
    kind = ir.VectorType(one.type)
    wide = vector_type(Lanes(MATRIX_ROWS, scalable=True), word(PAIR))
    both = vector.interleave(*(vector.bitcast(wide, x) for x in (one, other)))
    return vector.bitcast(kind, vector.scalable_extract(wide, both, 0))


def wide_type(kind: ir.VectorType) -> ir.VectorType:
    """The sums of two columns as one number."""
    return vector_type(Lanes(kind.shape[0] // 2, scalable=True), word(PAIR))


def word(bits: int) -> ir.Type:
    return ir.IntegerType.get_signless(bits)


def zeros(like: ir.Value) -> ir.Value:
    kind = ir.VectorType(like.type)
    if isinstance(kind.element_type, ir.FloatType):
        return vector.broadcast(kind, arith.constant(kind.element_type, 0.0))
    return filled(kind, 0)
