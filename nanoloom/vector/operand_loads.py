"""What a tile's point reads of an operand, as vectors or as one number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nanoloom.ir.access import Access, add, index
from nanoloom.ir.mlir import arith, ir, memref, vector
from nanoloom.nest.extent import ONE
from nanoloom.vector import stride2_load
from nanoloom.vector.body import read
from nanoloom.vector.extending_casts import extended
from nanoloom.vector.factors import factor_at
from nanoloom.vector.lane_values import LaneValue, Uniform, Vector
from nanoloom.vector.scalable_gather import Strided
from nanoloom.vector.value_cache import ValueCache
from nanoloom.vector.widths import vector_type

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile
    from nanoloom.vector.tile_points import Point


def load_operand(
    strip: RegisterTile, number: int, point: Point, once: ValueCache | None = None
) -> LaneValue:
    """An input of a strip at a point."""
    x, dim = strip.inputs[number], strip.dim
    factor = factor_at(strip, point) if number == 0 else None
    if factor is not None:
        return Uniform(arith.constant(x.element, factor))
    at = [i.value for i in (once or ValueCache()).indices(x, point.ivs)]
    access = x.access(dim)
    if access is Access.UNIFORM:
        return Uniform(load_scalar(strip, number, memref.load(x.buffer, at)))
    kind = vector_type(strip.lanes, x.element)
    if access is Access.CONTIGUOUS and strip.lanes != ONE:
        return Vector(read(kind, x.buffer, at, point.mask, strip.block))
    if strip.lanes.scalable:
        return Vector(Strided(x, dim, strip.near).read(kind, at, point.mask))
    if strip.takes_second(x):
        beside = [at, [*at[:-1], add(at[-1], index(kind.shape[0]))]]
        parts = zip(beside, stride2_load.masks(kind.shape[0], point.mask), strict=True)
        halves = [read(kind, x.buffer, place, mask) for place, mask in parts]
        return Vector(stride2_load.joined(halves))
    iv, lanes = point.ivs[dim], range(strip.lanes.count)
    beside = [point.moved(dim, add(iv, index(lane))) for lane in lanes]
    return Vector(read_lanes(kind, [x.indices(p.ivs) for p in beside], x.buffer))


def load_scalar(strip: RegisterTile, number: int, value: ir.Value) -> ir.Value:
    """A number that is the same in all lanes, extended as it is loaded."""
    x = strip.inputs[number]
    once = sum(other.buffer == x.buffer for other in strip.inputs) == 1
    if not (strip.lanes.scalable and once) or str(x.element) in strip.halves:
        return value
    return extended(list(strip.block.arguments)[number], value)


def read_lanes(
    kind: ir.VectorType, at_lane: Sequence[Sequence[ir.Value]], buffer: ir.Value
) -> ir.Value:
    """One load a lane."""
    load_operand = [memref.load(buffer, list(at)) for at in at_lane]
    return vector.from_elements(kind, load_operand)
