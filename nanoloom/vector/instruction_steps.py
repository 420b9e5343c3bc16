"""Steps of a sum that one instruction takes, in registers of any width.

    sums[r, c] += a[r, k] * b[k, c] + ... + a[r, k + g] * b[k + g, c]

The instruction is a value (target/instructions), which says all: how many steps are a
group (g), of how many rows at once (r), of what numbers.  Groups of each column lie
together in b, woven while compiling (packed_reads.py) or in registers; of an
instruction that takes a lane of a's numbers b's rows are as they lie.  A vector of sums
is as many registers as there are numbers in a group.

Where the instruction takes no such signs, those of a are inverted, which adds to every
sum what a multiple of b's sums takes away again: those are added up beside the others,
as of a row of ones.  Sums of two rows are interleaved while they are added up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nanoloom.ir.access import add, index, written
from nanoloom.ir.mlir import arith, ir, llvm, vector
from nanoloom.nest.extent import Lanes
from nanoloom.target.instructions.choose import DotUse
from nanoloom.target.instructions.instruction import BITS, LANE
from nanoloom.vector.grouped_rows import grouped_registers, parts_of
from nanoloom.vector.instruction_operands import RowFactors, filled
from nanoloom.vector.lane_values import Vector
from nanoloom.vector.nanokernel.instructions import add_products
from nanoloom.vector.nanokernel.k_groups import interleaved_panel
from nanoloom.vector.operand_loads import load_operand
from nanoloom.vector.tile_points import Point
from nanoloom.vector.value_cache import ValueCache
from nanoloom.vector.widths import vector_type

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile

Rows = tuple[int, ...]  # points whose sums are one, by their numbers; none: of ones
Values = list[ir.Value]


@dataclass(frozen=True)
class InstructionSteps:
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
        return self.use.dot.steps

    def columns(self, strip: RegisterTile, points: Sequence[Point]) -> list[list[Rows]]:
        """The points of so many rows each, those of the same columns together."""
        found: dict[object, list[int]] = {}
        for number, point in enumerate(points):
            found.setdefault(written(point.ivs[strip.dim]), []).append(number)
        most, ones = self.use.dot.rows, [()] if self.use.flipped else []
        return [
            [*(tuple(x[i : i + most]) for i in range(0, len(x), most)), *ones]
            for x in found.values()
        ]

    def begun(self, strip: RegisterTile, points: list[Point], start: Values) -> Values:
        """What the sums of rows begin with."""
        zeros = filled(start[0].type, 0)
        return [
            self.joined([start[number] for number in rows] or [zeros])
            for _, rows in carried(self.columns(strip, points))
        ]

    def finished(
        self, strip: RegisterTile, points: list[Point], made: Values
    ) -> Values:
        """The sums of all points, less what inverted signs have added."""
        found = dict[int, ir.Value]()
        for here in by_columns(self.columns(strip, points), made):
            ones = here.pop((), None)
            if ones is not None:
                factor = filled(ones.type, self.use.correction)
                less = arith.muli(ones, factor)
                here = {rows: arith.addi(x, less) for rows, x in here.items()}
            for rows, value in here.items():
                found |= zip(rows, self.taken_apart(value), strict=False)
        return [found[number] for number in range(len(points))]

    def step(
        self,
        strip: RegisterTile,
        at: ir.Value,
        points: list[Point],
        values: Values,
        once: ValueCache,
        alone: bool = False,
    ) -> Values:
        """The sums with a group of steps added.

        alone: a single step, in its place of a group.
        """
        here = [point.moved(self.depth, at) for point in points]
        columns = self.columns(strip, points)
        factors = RowFactors(strip, self.left, self.use, self.numbers_of(strip))
        made, left = by_columns(columns, values), dict[Rows, ir.Value]()

        def factor(rows: Rows) -> ir.Value:
            if rows not in left:
                these = [here[number] for number in rows]
                left[rows] = factors.of(these, at, once, alone=alone)
            return left[rows]

        for rows in (x for column in columns for x in column if self.holds_rows):
            factor(rows)
        for column, registers in self.registers(strip, at, here, once):
            for rows, sum_ in made[column].items():
                one = factor(rows)
                for part, right in registers:
                    sum_ = self.added(sum_, one, right, part)
                made[column][rows] = sum_
            if self.use.dot.lanes:
                # No load comes in front of this: LLVM would run out of registers.
                llvm.InlineAsmOp(None, [], "", "~{memory}", has_side_effects=True)
        return [made[column][rows] for column, rows in carried(columns)]

    @property
    def holds_rows(self) -> bool:
        """Whether the numbers of all rows are held and the right operand's registers
        come one at a time; else those of a column are held, and rows one at a time."""
        return self.use.dot.rows > 1 or self.use.dot.lanes > 0

    def registers(
        self, strip: RegisterTile, at: ir.Value, here: list[Point], once: ValueCache
    ) -> Iterator[tuple[int, Sequence[tuple[int, ir.Value]]]]:
        """Of a column, by its number, those of the right operand that are held, each
        with which part of the sums it adds to, or which lane it is multiplied by."""
        firsts = [here[column[0][0]] for column in self.columns(strip, here)]
        for lane in range(self.use.dot.lanes):
            step = add(at, index(lane))
            for column, point in enumerate(firsts):
                there = point.moved(self.depth, step)
                found = strip.lanes_of(self.right, there, once)
                assert isinstance(found, Vector)
                yield column, [(lane, found.value)]
        if self.use.dot.lanes:
            return
        kind = self.numbers_of(strip)
        along = self.depth, self.group
        for column, point in enumerate(firsts):
            loaded = (
                grouped_registers(strip, self.right, along, kind, point)
                if self.woven
                else self.weave(strip, point)
            )
            if not self.holds_rows:
                yield column, [*enumerate(loaded)]
                continue
            for part, right in enumerate(loaded):
                yield column, [(part, right)]

    def weave(self, strip: RegisterTile, point: Point) -> Values:
        """Registers with a group of each column, of rows as they lie."""
        begin = point.ivs[self.depth]
        steps = (add(begin, index(g)) for g in range(self.group))
        rows = [
            load_operand(strip, self.right, point.moved(self.depth, k)) for k in steps
        ]
        wide = interleaved_panel([row.value for row in rows if isinstance(row, Vector)])
        return parts_of(wide, self.numbers_of(strip))

    def added(
        self, value: ir.Value, left: ir.Value, right: ir.Value, part: int
    ) -> ir.Value:
        """A vector of sums with the products of a part of it, or of a lane."""
        if self.use.dot.lanes:
            return add_products(self.use, value, left, right, [part])
        kind, many = ir.VectorType(value.type), self.use.dot.bits // LANE
        register = vector_type(Lanes(many, scalable=True), kind.element_type)
        sums = vector.scalable_extract(register, value, part * many)
        sums = add_products(self.use, sums, left, right)
        return vector.scalable_insert(sums, value, part * many)

    def numbers_of(self, strip: RegisterTile) -> ir.VectorType:
        """A register of the right operand's numbers."""
        count = self.use.dot.bits // BITS[self.use.dot.right]
        element = strip.inputs[self.right].element
        return vector_type(Lanes(count, scalable=True), element)

    # ---- sums of two rows --------------------------------------------------------

    def joined(self, rows: Values) -> ir.Value:
        """The sums of two rows: two columns of one, the same of the other.

        Where the instruction takes the columns first, single ones.
        """
        one, other = (*rows, filled(rows[0].type, 0))[:2]
        if self.use.dot.rows == 1:
            return one
        if self.use.swapped:
            return vector.interleave(one, other)
        kind = ir.VectorType(one.type)
        both = vector.interleave(*(vector.bitcast(wide(kind), x) for x in (one, other)))
        whole = Lanes(2 * kind.shape[0], scalable=True)
        return vector.bitcast(vector_type(whole, kind.element_type), both)

    def taken_apart(self, sums: ir.Value) -> Values:
        """The sums of each row."""
        if self.use.dot.rows == 1:
            return [sums]
        if self.use.swapped:
            return list(vector.deinterleave(sums))
        kind = ir.VectorType(sums.type)
        half = vector_type(Lanes(kind.shape[0] // 2, scalable=True), kind.element_type)
        rows = vector.deinterleave(vector.bitcast(wide(kind), sums))
        return [vector.bitcast(half, row) for row in rows]


def wide(kind: ir.VectorType) -> ir.VectorType:
    """The sums of two columns as one number."""
    lanes = Lanes(kind.shape[0] // 2, scalable=True)
    return vector_type(lanes, ir.IntegerType.get_signless(2 * LANE))


def carried(columns: list[list[Rows]]) -> list[tuple[int, Rows]]:
    """The order in which sums go from step to step, each with its column: that of the
    points, to which single steps add; those of ones behind."""
    every = [(n, rows) for n, column in enumerate(columns) for rows in column]
    return sorted(every, key=lambda x: (not x[1], x[1]))


def by_columns(columns: list[list[Rows]], sums: Values) -> list[dict[Rows, ir.Value]]:
    """Sums that are carried, as those of each column."""
    every = dict(zip(carried(columns), sums, strict=True))
    return [
        {rows: every[n, rows] for rows in column} for n, column in enumerate(columns)
    ]
