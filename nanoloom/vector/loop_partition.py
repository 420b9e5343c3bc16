"""Loops around guarded reads: a prologue, a steady state and an epilogue.

    for i: for k in 0..3: y[i] += (x[s i + k - 1] within, else 0) * w[k]
      ->  for i: for k within x: y[i] += x[s i + k - 1] * w[k]

Steps of a sum that are outside for all points are no steps of its loop.  Points that
are computed at once are those whose windows are within; at the ends of their loop it is
known at each step of the sum which of them are.  nest/guard.py partitions what is
known, vector/guard.py what only a run knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nanoloom.ir.access import constant_of, index, written
from nanoloom.ir.linalg_query import map_dims
from nanoloom.ir.mlir import ir
from nanoloom.vector.guard import Bounds
from nanoloom.vector.guarded_operand import GuardedOperand
from nanoloom.vector.software_pipelining import fence
from nanoloom.vector.value_cache import ValueCache

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile
    from nanoloom.vector.tile_points import Point, Step


def guards(strip: RegisterTile, dim: int) -> Iterator[tuple[GuardedOperand, int]]:
    """What is guarded along a loop of a tile, and in which dimension."""
    for x in strip.inputs:
        place = x.along(dim) if isinstance(x, GuardedOperand) else None
        if isinstance(x, GuardedOperand) and place is not None:
            yield x, place


def limits(strip: RegisterTile, dim: int, points: Sequence[Point]) -> Bounds | None:
    """The steps of a sum that are within, None where all are."""
    for x, place in guards(strip, dim):
        if len({written(x.places(point.ivs)[place]) for point in points}) > 1:
            continue  # these are within it, or at known ends of a row
        extent = strip.extent(dim)
        begin, end = x.steps(place, dim, points[0], extent)
        whole = constant_of(begin) == 0 and constant_of(end) == constant_of(extent)
        return None if whole and constant_of(end) is not None else (begin, end)
    return None


def points_at_steps(
    strip: RegisterTile, dim: int, points: Sequence[Point]
) -> list[list[int]] | None:
    """Which points of a tile at an end of a row are within, at each step of a sum; None
    of a tile that is within at all of them."""
    steps = constant_of(strip.extent(dim))
    for x, place in guards(strip, dim):
        wide, found = constant_of(x.size(place)), list[list[int]]()
        for number in range(steps or 0):
            here = (point.moved(dim, index(number)) for point in points)
            at = [constant_of(x.places(point.ivs)[place]) for point in here]
            if wide is None or None in at:
                return None
            inside = (n for n, i in enumerate(at) if i is not None and 0 <= i < wide)
            found.append(list(inside))
        return None if all(len(x) == len(points) for x in found) else found
    return None


def points_within(strip: RegisterTile, dim: int) -> Bounds | None:
    """The points of a loop whose windows are within what a tile's sums read, None where
    nothing is guarded."""
    for x, place in guards(strip, dim):
        return x.windows(place, dim, strip)
    for number, source in strip.sources.items():
        (write,) = source.strip.outputs
        read = map_dims(strip.inputs[number].indexing)
        for own, axis in zip(map_dims(write.indexing), read, strict=True):
            found = None
            if axis == dim and own is not None:
                found = points_within(source.strip, own)
            if found is not None:
                return found
    return None


def at_ends(
    strip: RegisterTile,
    there: list[list[int]],
    dims: list[int],
    points: list[Point],
    values: list[ir.Value],
    inner: Step,
    once: ValueCache,
) -> list[ir.Value]:
    """Steps of a sum that some points have; there: their numbers, of each step.

    What is inside of those is a loop: written out, all of it would be loaded first.
    """
    made, count, rolled = list(values), len(strip.outputs), replace(strip, unrolled={})
    for number, few in enumerate(there):
        here = [points[n].moved(dims[0], index(number)) for n in few]
        places = [n * count + each for n in few for each in range(count)]
        some = [made[place] for place in places]
        way = strip if len(few) == len(points) else rolled
        some = way.accumulate(dims[1:], here, some, inner, once) if few else []
        for place, value in zip(places, some, strict=True):
            made[place] = value
        fence()  # LLVM would load all numbers first, and run out of registers
    return made
