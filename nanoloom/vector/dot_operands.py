"""What a dot product multiplies rows by: a group of a row's numbers in every lane."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nanoloom.mlir import arith, ir, memref, vector
from nanoloom.nest.extent import Lanes
from nanoloom.target.instructions.choose import DotUse
from nanoloom.target.instructions.instruction import GROUP, LANE
from nanoloom.vector.access import index, multiply, written
from nanoloom.vector.lane_values import Vector
from nanoloom.vector.nanokernel.instructions import emit
from nanoloom.vector.tile_points import Point
from nanoloom.vector.value_cache import ValueCache
from nanoloom.vector.widths import vector_type

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile

SIGN_BITS, SIGN_BIT = 0x80808080 - (1 << 32), 0x80 - (1 << 8)


@dataclass(frozen=True)
class DotOperands:
    """An input of a strip.

    kind: of a register of the other operand's numbers.  count: numbers of a group.
    """

    strip: RegisterTile
    number: int
    use: DotUse
    kind: ir.VectorType
    count: int

    @property
    def word(self) -> ir.Type:
        """Of the bits of a group."""
        return ir.IntegerType.get_signless(LANE // self.narrow * self.count)

    @property
    def narrow(self) -> int:
        """Numbers in a lane."""
        return GROUP[self.use.dot.right]

    def group(self, point: Point, at: ir.Value, once: ValueCache) -> ir.Value:
        """The group that begins at a point."""
        del at
        key = self.use, self.strip.place(self.number, point, once)
        if key not in once.made:
            x = self.strip.inputs[self.number]
            group = ir.VectorType.get([self.count], self.kind.element_type)
            numbers = vector.load(group, x.buffer, x.indices(point.ivs))
            one = vector.bitcast(ir.VectorType.get([1], self.word), numbers)
            wide = self.in_lanes(vector.extract(one, [], [0]))
            if self.use.flipped:
                wide = arith.xori(wide, filled(wide.type, SIGN_BITS))
            once.made[key] = [Vector(vector.bitcast(self.kind, wide))]
        return known(once, key)

    def alone(self, point: Point, at: ir.Value, once: ValueCache) -> ir.Value:
        """A single number in its place of a group, zeros beside it.

        at: its step of the sum.
        """
        key = self.use, self.strip.place(self.number, point, once)
        if key not in once.made:
            x = self.strip.inputs[self.number]
            bits = ir.IntegerType.get_signless(LANE // self.narrow)
            number = memref.load(x.buffer, x.indices(point.ivs))
            if number.type != bits:
                number = arith.bitcast(bits, number)
            if self.use.flipped:
                number = arith.xori(number, arith.constant(bits, SIGN_BIT))
            placed = arith.shli(arith.extui(self.word, number), self.shift(at))
            wide = vector.bitcast(self.kind, self.in_lanes(placed))
            once.made[key] = [Vector(wide)]
        return known(once, key)

    def ones(self) -> ir.Value:
        """A group of ones."""
        return filled(self.kind, 1)

    def one(self, at: ir.Value) -> ir.Value:
        """A single one in the place of a step in its group, zeros beside it."""
        placed = arith.shli(arith.constant(self.word, 1), self.shift(at))
        return vector.bitcast(self.kind, self.in_lanes(placed))

    def shift(self, at: ir.Value) -> ir.Value:
        """Bits in front of a step in its group."""
        place = arith.remui(at, index(self.count))
        return arith.index_cast(self.word, multiply(place, index(LANE // self.narrow)))

    def in_lanes(self, group: ir.Value) -> ir.Value:
        """A group as bits in every lane of a register."""
        lanes = Lanes(self.kind.shape[0] // self.count, scalable=True)
        return vector.broadcast(vector_type(lanes, self.word), group)


def added(
    use: DotUse, value: ir.Value, factor: ir.Value, right: ir.Value, number: int
) -> ir.Value:
    """A vector of sums with the products of a group in one of its registers."""
    kind = ir.VectorType(value.type)
    many = use.dot.bits // LANE
    part = vector_type(Lanes(many, scalable=True), kind.element_type)
    sums = vector.scalable_extract(part, value, number * many)
    pair = (right, factor) if use.swapped else (factor, right)
    sums = emit(use.dot.function, part, [sums, *pair])
    return vector.scalable_insert(sums, value, number * many)


def place(strip: RegisterTile, point: Point) -> Hashable:
    """Where a point is along the vectors."""
    return written(point.ivs[strip.dim])


def known(once: ValueCache, key: Hashable) -> ir.Value:
    (made,) = once.made[key]
    assert isinstance(made, Vector)
    return made.value


def filled(kind: ir.Type, number: int) -> ir.Value:
    """A vector of one number."""
    element_type = ir.VectorType(kind).element_type
    return vector.broadcast(kind, arith.constant(element_type, number))
