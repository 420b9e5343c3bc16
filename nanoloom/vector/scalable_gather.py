"""Numbers at places of their own as a scalable vector.

    result[lane] = buffer[at + places[lane]]

Gathers and scatters; where all places are one distance apart, LLVM knows the loads and
stores that RISC-V has for such (vlse, vsse).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nanoloom.ir.access import (
    Operand,
    add,
    coefficient,
    constant_of,
    index,
    multiply,
)
from nanoloom.ir.mlir import arith, ir, llvm, memref, vector
from nanoloom.vector.addresses import distance, strides_of
from nanoloom.vector.widths import filled

MOST_APART = 1 << 20  # numbers: 256 lanes of 8 bytes stay within 32 bits


def has_distance(x: Operand, dim: int) -> bool:
    """Whether a step along a dimension is one of always the same length."""
    return all(coefficient(e, dim) is not None for e in x.indexing.results)


@dataclass(frozen=True)
class Strided:
    """An operand whose numbers along a dimension lie at one distance.

    near: that is counted in 32 bits, where so many are enough: SVE's gathers take
    twice as many places of 32 bits at once.
    """

    x: Operand
    dim: int
    near: bool

    def read(
        self, kind: ir.VectorType, at: Sequence[ir.Value], mask: ir.Value | None
    ) -> ir.Value:
        """The lanes from `at` on; 1 where the mask has none."""
        return gathered(kind, self.x.buffer, at, self.places(kind), mask)

    def write(
        self, value: ir.Value, at: Sequence[ir.Value], mask: ir.Value | None
    ) -> None:
        """Store the lanes from `at` on; those of a mask."""
        mask = every_lane(value.type) if mask is None else mask
        places = self.places(ir.VectorType(value.type))
        to = after(self.x.buffer, at)
        vector.scatter(None, to, [index(0)], places, mask, value)

    def places(self, kind: ir.VectorType) -> ir.Value:
        """How far behind the first number each lane is."""
        apart = distance(self.x, self.dim)
        known = constant_of(apart)
        if self.near and known is not None and known < MOST_APART:
            i32 = ir.IntegerType.get_signless(32)
            places = same_shape(kind, i32)
            return arith.muli(llvm.intr_stepvector(places), filled(places, known))
        places = same_shape(kind, ir.IndexType.get())
        return arith.muli(vector.step(places), vector.broadcast(places, apart))


def every_lane(kind: ir.Type) -> ir.Value:
    """The mask of all lanes."""
    return filled(same_shape(ir.VectorType(kind), ir.IntegerType.get_signless(1)), 1)


def gathered(
    kind: ir.VectorType,
    buffer: ir.Value,
    at: Sequence[ir.Value],
    places: ir.Value,
    mask: ir.Value | None,
) -> ir.Value:
    """What lies so many numbers behind a place; 1 where the mask has no lane."""
    mask = every_lane(kind) if mask is None else mask
    rest = filled(kind, 1)
    return vector.gather(kind, after(buffer, at), [index(0)], places, mask, rest)


def after(buffer: ir.Value, at: Sequence[ir.Value]) -> ir.Value:
    """A buffer from an element on as one row: MLIR gathers from no others."""
    base, place, *rest = memref.ExtractStridedMetadataOp(buffer).results
    sizes, strides = rest[: len(at)], rest[len(at) :]
    count = index(1)
    for i, size, stride in zip(at, sizes, strides, strict=True):
        place, count = add(place, multiply(i, stride)), multiply(count, size)
    dynamic = ir.ShapedType.get_dynamic_size()
    row = ir.StridedLayoutAttr.get(ir.ShapedType.get_dynamic_stride_or_offset(), [1])
    element = ir.MemRefType(buffer.type).element_type
    kind = ir.MemRefType.get([dynamic], element, row)
    return memref.reinterpret_cast(
        kind, base, [place], [count], [], [dynamic], [dynamic], [1]
    )


def same_shape(kind: ir.VectorType, element: ir.Type) -> ir.VectorType:
    """A vector of as many lanes."""
    return ir.VectorType.get(kind.shape, element, scalable=kind.scalable_dims)


def linear(
    buffer: ir.Value, places: Sequence[ir.Value | None], kind: ir.VectorType
) -> ir.Value:
    """How far behind the first number lanes are, of places in some dimensions."""
    total: ir.Value | None = None
    for place, stride in zip(places, strides_of(buffer), strict=True):
        if place is not None:
            far = arith.muli(place, vector.broadcast(kind, stride))
            total = far if total is None else arith.addi(total, far)
    assert total is not None, "lanes at one place are one number"
    return total
