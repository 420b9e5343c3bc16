"""How much of what a stage makes is read inside of another stage's loop."""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.nest.extent import Extent
from nanoloom.nest.index import Index
from nanoloom.nest.loop import Placement
from nanoloom.nest.statement import Statement

Sizes = dict[str, Extent]  # of axes by their names


def footprint_inside(stage: Statement, placement: Placement, loop: str) -> Sizes:
    """Points of each axis of a stage in one step of a loop of its own."""
    sizes: Sizes = {axis.name: axis.extent for axis in stage.axes}
    sizes |= {x.axis: x.points or x.trips for x in reversed(placement.loops)}
    for each in placement.loops:
        sizes[each.axis] = each.step
        if each.name == loop:
            break
    return sizes


def read_of(producer: Statement, consumer: Statement, sizes: Sizes) -> Sizes:
    """Points of each axis of a producer that a consumer of so many points reads.

    Whole axes where the place is no sum of axes; {} if it reads nothing of it.
    """
    found: dict[str, list[Index]] = {}
    for write in producer.writes:
        for read in consumer.taken:
            if read.buffer == write.buffer:
                for axis, index in zip(write.plain, read.indices, strict=True):
                    if axis is not None:
                        found.setdefault(axis, []).append(index)
    extents: Sizes = {axis.name: axis.extent for axis in producer.axes}
    return {axis: hull(x, sizes, extents[axis]) for axis, x in found.items()}


def hull(indices: Sequence[Index], sizes: Sizes, most: Extent) -> Extent:
    """Points between the first and the last place of several indices.

    t[i] and t[i + 1], i in 0..8: 9.
    """
    made: Extent = 0
    for index in indices:
        made = larger(made, footprint(index, sizes, most))
    begins = [index.offset for index in indices]
    apart = max(begins) - min(begins)
    if not isinstance(made, int) or not isinstance(most, int):
        return made if not apart else most
    return min(made + apart, most)


def footprint(index: Index, sizes: Sizes, most: Extent) -> Extent:
    """Points between the first and the last place of an index, at most all there are.

    i in 0..8, r in 0..3: 2*i + r reaches over 2*7 + 2 + 1 = 17.
    """
    reach = 1
    for axis, factor in index.terms:
        size = sizes.get(axis)
        if index.other or not isinstance(size, int):
            return most
        reach += abs(factor) * (size - 1)
    return min(reach, most) if isinstance(most, int) else most


def larger(one: Extent, other: Extent) -> Extent:
    """Of two numbers of points; what is no number is all of them."""
    if isinstance(one, int) and isinstance(other, int):
        return max(one, other)
    return other if isinstance(one, int) else one
