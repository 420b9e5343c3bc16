"""What a tile reads is computed on its points, and stays in registers.

    for i: sums[i] = sum(f(i, k));  for i: y[i] = g(sums[i])
      ->  for some i at once: y[i] = g(sum(f(i, k)))

Sums come first, of all points together; what is elementwise is computed where it is
read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nanoloom.kernels.structure import map_dims
from nanoloom.mlir import ir, vector
from nanoloom.nest.extent import ONE, Lanes
from nanoloom.vector import second_lanes
from nanoloom.vector.access import Access, add, index, written
from nanoloom.vector.lane_values import LaneValue, Uniform, Vector
from nanoloom.vector.once import Once

if TYPE_CHECKING:
    from nanoloom.vector.points import Point
    from nanoloom.vector.strip import Strip


@dataclass(frozen=True)
class Source:
    """A generic of one result that is computed where another one reads it."""

    made_by: ir.Operation
    strip: Strip

    def here(self, reader: Strip, number: int, point: Point) -> Point:
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

    def value(self, reader: Strip, number: int, point: Point, once: Once) -> LaneValue:
        """What a reader's operand is, computed if it is not at hand."""
        here = self.here(reader, number, point)
        if reader.inputs[number].access(reader.dim) is Access.UNIFORM:
            lone = replace(here, mask=None)
            if self.place(lone, ONE) not in once.read:
                made = self.computed(lone, ONE, Once())
                element = vector.extract(made.value, [], [0])
                once.read[self.place(lone, ONE)] = Uniform(element)
            return once.read[self.place(lone, ONE)]
        place = self.place(here, reader.lanes)
        if place not in once.read:
            once.read[place] = self.computed(here, reader.lanes, once)
        return once.read[place]

    def computed(self, point: Point, lanes: Lanes, once: Once) -> Vector:
        """An elementwise generic at a point."""
        if point.step > 1:
            return Vector(self.spread(point, lanes, once))
        strip = replace(self.strip, lanes=lanes)
        before = [strip.started(x, point) for x in strip.outputs]
        (made,) = strip.compute(point, before, once)
        return Vector(made)

    def spread(self, point: Point, lanes: Lanes, once: Once) -> ir.Value:
        """The same where lanes are every second place."""
        dim, parts = self.strip.dim, list[ir.Value]()
        for n, mask in enumerate(second_lanes.masks(lanes.count, point.mask)):
            at = add(point.ivs[dim], index(n * lanes.count))
            here = replace(point.moved(dim, at), mask=mask, step=1)
            parts.append(self.computed(here, lanes, once).value)
        return second_lanes.joined(parts)

    def summed(self, points: list[Point], lanes: Lanes, once: Once) -> None:
        """A sum at some points together, for all that will read it."""
        strip = replace(self.strip, lanes=lanes)
        sums = strip.summed(points, strip.computed, once)
        for point, value in zip(points, sums, strict=True):
            once.read[self.place(point, lanes)] = Vector(value)


def compute_sums(reader: Strip, points: list[Point], once: Once) -> None:
    """All sums that points of a tile read, also through what is elementwise."""
    for number, source in reader.sources.items():
        here = [source.here(reader, number, point) for point in points]
        if not source.strip.reduced:
            compute_sums(replace(source.strip, lanes=reader.lanes), here, once)
        elif source.place(here[0], reader.lanes) not in once.read:
            source.summed(here, reader.lanes, once)
