"""What a tile reads is computed on its points, and stays in registers.

    for i: sums[i] = sum(f(i, k));  for i: y[i] = g(sums[i])
      ->  for some i at once: y[i] = g(sum(f(i, k)))

Sums come first, of all points together; what is elementwise is computed where it is
read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nanoloom.ir.access import (
    SECOND,
    Access,
    added,
    constant_of,
    difference,
    index,
    parts,
    whole,
    written,
)
from nanoloom.ir.linalg_query import map_dims
from nanoloom.ir.mlir import ir, vector
from nanoloom.nest.extent import ONE, Lanes
from nanoloom.vector.guarded_operand import is_zero
from nanoloom.vector.index_bounds import bounds
from nanoloom.vector.lane_values import LaneValue, Uniform, Vector
from nanoloom.vector.masked_iterations import first_lanes
from nanoloom.vector.stride2_load import joined, shared
from nanoloom.vector.value_cache import ValueCache

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile
    from nanoloom.vector.tile_points import Point


@dataclass(frozen=True)
class InlinedProducer:
    """A generic of one result that is computed where another one reads it.

    begins: which of that one's inputs it begins with (init_with_bias.py).
    """

    made_by: ir.Operation
    strip: RegisterTile
    begins: int | None = None

    def here(self, reader: RegisterTile, number: int, point: Point) -> Point:
        """The point that a reader's operand is at one of its own points."""
        ivs = [index(0) for _ in self.strip.kinds]
        (write,) = self.strip.outputs
        read = reader.inputs[number].indices(point.ivs)
        for dim, at in zip(map_dims(write.indexing), read, strict=True):
            assert dim is not None, "what is computed at a tile has a place each"
            ivs[dim] = at
        single = reader.lanes == ONE
        step = 1 if single else reader.inputs[number].step(reader.dim)
        return replace(point, ivs=tuple(ivs), step=step)

    def place(self, point: Point, lanes: Lanes) -> tuple[object, ...]:
        """What a value is known by."""
        places = (written(iv) for iv in point.ivs)
        return self.made_by, lanes, point.mask, point.step, *places

    def value(
        self, reader: RegisterTile, number: int, point: Point, once: ValueCache
    ) -> LaneValue:
        """What a reader's operand is, computed if it is not at hand."""
        here = self.here(reader, number, point)
        if reader.inputs[number].access(reader.dim) is Access.UNIFORM:
            lone = replace(here, mask=None)
            if self.place(lone, ONE) not in once.read:
                made = self.computed(lone, ONE, ValueCache())
                element = vector.extract(made.value, [], [0])
                once.read[self.place(lone, ONE)] = Uniform(element)
            return once.read[self.place(lone, ONE)]
        place = self.place(here, reader.lanes)
        if place not in once.read:
            once.read[place] = self.computed(here, reader.lanes, once)
        return once.read[place]

    def computed(self, point: Point, lanes: Lanes, once: ValueCache) -> Vector:
        """An elementwise generic at a point."""
        if point.step > 1:
            return Vector(self.spread(point, lanes, once))
        strip = replace(self.strip, lanes=lanes)
        before = [strip.started(x, point) for x in strip.outputs]
        (made,) = strip.compute(point, before, once)
        return Vector(made)

    def spread(self, point: Point, lanes: Lanes, once: ValueCache) -> ir.Value:
        """The same where lanes are every second place, of a border."""
        dim, count, made = self.strip.dim, lanes.count, list[ir.Value]()
        first, shift = shared(parts(point.ivs[dim]), count, point.mask)
        for n in range(SECOND):
            at = whole(added(first, (None, n * count)))
            mask = producers_of(at, lanes, self.strip.extent(dim), once)
            here = replace(point.moved(dim, at), mask=mask, step=1)
            place = self.place(here, lanes)
            if place not in once.read:
                once.read[place] = self.computed(here, lanes, once)
            made.append(once.read[place].value)  # type: ignore[union-attr] - vectors are read
        return made[0] if all(map(is_zero, made)) else joined(made, shift)

    def summed(
        self, points: list[Point], lanes: Lanes, once: ValueCache, start: list[ir.Value]
    ) -> None:
        """A sum at some points together, for all that will read it.

        start: what it begins with; [] for what its plan says.
        """
        strip, told = replace(self.strip, lanes=lanes), once.added

        def added(which: int, value: ir.Value) -> None:
            once.read[self.place(points[which], lanes)] = Vector(value)
            if told is not None:
                told(which, value)

        once = replace(once, added=added)
        for which, value in enumerate(
            strip.summed(points, strip.computed, once, start)
        ):
            once.read[self.place(points[which], lanes)] = Vector(value)


def producers_of(
    at: ir.Value, lanes: Lanes, end: ir.Value, once: ValueCache
) -> ir.Value | None:
    """The mask of the lanes in front of an end, None where all are."""
    here, there = bounds(at), constant_of(end)
    if here is not None and there is not None and here[1] + lanes.count <= there:
        return None
    key = "in front", written(at), written(end)
    if key not in once.read:
        once.read[key] = Vector(first_lanes(lanes, difference(end, at)))
    return once.read[key].value  # type: ignore[union-attr] - a vector


def is_outside(reader: RegisterTile, point: Point, once: ValueCache) -> bool:
    """Whether a border that is made at the tile is all zeros at a point."""
    borders = [n for n, source in reader.sources.items() if source.strip.guarded]
    return any(is_zero(reader.vector_of(n, point, once)) for n in borders)


def sums_at_tile(reader: RegisterTile) -> int:
    """How often a tile reads sums that are computed at it."""
    strips = [source.strip for source in reader.sources.values()]
    return sum(1 if strip.reduced else sums_at_tile(strip) for strip in strips)


def compute_sums(reader: RegisterTile, points: list[Point], once: ValueCache) -> None:
    """All sums that points of a tile read, also through what is elementwise."""
    for number, source in reader.sources.items():
        here = [source.here(reader, number, point) for point in points]
        if not source.strip.reduced:
            compute_sums(replace(source.strip, lanes=reader.lanes), here, once)
        elif source.place(here[0], reader.lanes) not in once.read:
            start: list[ir.Value] = []
            if source.begins is not None:
                start = [reader.vector_of(source.begins, p, once) for p in points]
            source.summed(here, reader.lanes, once, start)
