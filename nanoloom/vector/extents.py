"""Extents of loops: numbers where they are static, values where they are not."""

from __future__ import annotations

from nanoloom.ir.access import constant_of, index
from nanoloom.ir.mlir import arith, ir, memref


def size(buffer: ir.Value, place: int) -> ir.Value:
    kind = ir.MemRefType(buffer.type)
    if kind.is_dynamic_dim(place):
        return memref.dim(buffer, index(place))
    return index(kind.shape[place])


def rounded_down(extent: ir.Value, multiple: int | ir.Value) -> ir.Value:
    """The largest multiple that is no larger."""
    if not isinstance(multiple, int):
        return arith.subi(extent, arith.remui(extent, multiple))
    known = constant_of(extent)
    if known is not None:
        return index(known // multiple * multiple)
    if multiple == 1:
        return extent
    return arith.subi(extent, arith.remui(extent, index(multiple)))


def is_same(one: ir.Value, other: ir.Value) -> bool:
    """Whether two extents are the same known number."""
    known = constant_of(one)
    return known is not None and known == constant_of(other)


def is_next(one: ir.Value, other: ir.Value, by: int = 1) -> bool:
    """Whether two extents are known numbers, the second larger by so much."""
    known, following = constant_of(one), constant_of(other)
    return known is not None and following == known + by
