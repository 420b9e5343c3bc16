"""What an instruction multiplies rows by, in registers of any width: numbers of a row.

A group of them in every lane; of two rows beside each other in every matrix; four in
every 128 bits where it takes a lane of those.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nanoloom.ir.access import index, multiply
from nanoloom.ir.mlir import arith, ir, llvm, memref, vector
from nanoloom.nest.extent import Lanes
from nanoloom.target.instructions.aarch64 import REPEATED_QUAD
from nanoloom.target.instructions.choose import DotUse
from nanoloom.target.instructions.instruction import BITS
from nanoloom.vector.lane_values import Vector
from nanoloom.vector.nanokernel.instructions import emit_with, in_lanes, word_of
from nanoloom.vector.tile_points import Point
from nanoloom.vector.value_cache import ValueCache
from nanoloom.vector.widths import filled, vector_type

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile

SIGN_BIT = 0x80 - (1 << 8)


@dataclass(frozen=True)
class RowFactors:
    """An input of a strip.  kind: of a register of the other operand's numbers."""

    strip: RegisterTile
    number: int
    use: DotUse
    kind: ir.VectorType

    def of(
        self, points: Sequence[Point], at: ir.Value, once: ValueCache, *, alone: bool
    ) -> ir.Value:
        """Of the points of so many rows, from a step of the sum on; of ones, if there
        are none.  alone: of this step, zeros in place of the others of its group."""
        if not points:
            return self.one(at) if alone else filled(self.kind, 1)
        one, *more = (self.known(point, at, once, alone=alone) for point in points)
        return beside(one, more[0]) if more else one

    def known(
        self, point: Point, at: ir.Value, once: ValueCache, *, alone: bool
    ) -> ir.Value:
        key: Hashable = (self.use, self.strip.place(self.number, point, once))
        if key not in once.made:
            x = self.strip.inputs[self.number]
            place = x.indices(point.ivs)
            if alone:
                made = self.placed(memref.load(x.buffer, place), at)
            else:
                some = ir.VectorType.get([self.use.dot.steps], x.element)
                made = self.repeated(vector.load(some, x.buffer, place))
            once.made[key] = [Vector(made)]
        (found,) = once.made[key]
        assert isinstance(found, Vector)
        return found.value

    def repeated(self, group: ir.Value) -> ir.Value:
        """Neighbours of a row, everywhere in a register."""
        if not self.use.dot.lanes:
            return in_lanes(word_of(group), self.kind, flipped=self.use.flipped)
        wide = vector.scalable_insert(group, llvm.mlir_poison(self.kind), 0)
        return emit_with(REPEATED_QUAD, self.kind, [wide], [0])

    def placed(self, number: ir.Value, at: ir.Value) -> ir.Value:
        """A number in its place of a group, zeros beside it."""
        bits = ir.IntegerType.get_signless(self.bits)
        if number.type != bits:
            number = arith.bitcast(bits, number)
        if self.use.flipped:
            number = arith.xori(number, arith.constant(bits, SIGN_BIT))
        word = ir.IntegerType.get_signless(self.bits * self.use.dot.group)
        wide = arith.extui(word, number)
        return in_lanes(arith.shli(wide, self.shift(at, word)), self.kind)

    def one(self, at: ir.Value) -> ir.Value:
        """A single one in the place of a step in its group, zeros beside it."""
        word = ir.IntegerType.get_signless(self.bits * self.use.dot.group)
        placed = arith.shli(arith.constant(word, 1), self.shift(at, word))
        return in_lanes(placed, self.kind)

    def shift(self, at: ir.Value, word: ir.Type) -> ir.Value:
        """Bits in front of a step in its group."""
        place = arith.remui(at, index(self.use.dot.group))
        return arith.index_cast(word, multiply(place, index(self.bits)))

    @property
    def bits(self) -> int:
        """Of a number."""
        return BITS[self.use.dot.right]


def beside(one: ir.Value, other: ir.Value) -> ir.Value:
    """The groups of two rows, in all matrices of a register."""
    kind = ir.VectorType(one.type)
    bits = kind.shape[0] * kind.element_type.width // 2  # type: ignore[attr-defined] - of numbers
    wide = vector_type(Lanes(2, scalable=True), ir.IntegerType.get_signless(bits))
    both = vector.interleave(*(vector.bitcast(wide, x) for x in (one, other)))
    return vector.bitcast(kind, vector.scalable_extract(wide, both, 0))
