"""Which numbers stay in registers while the sums are outside of the points.

    for r: { v = w[r];  for x: y[x] += a[x + r] * v }

The first results, and of other operands what the points near the first one read most
often; those points are written out for each step of the sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from nanoloom.nest.granularity import MOST_WRITTEN
from nanoloom.nest.reuse import Place
from nanoloom.nest.taps import Tap, Window


@dataclass(frozen=True)
class Residency:
    """extents: of the points that are written out.  keys: the operands and places that
    stay, and how often each of them is used."""

    extents: tuple[int, ...]
    keys: Mapping[tuple[int, Place], int]


def residency(
    window: Window, sums: list[int], extents: list[int], kept: Mapping[int, int]
) -> Residency:
    """sums, extents: of the window's sums and points; kept: vectors of each operand.

    Where that would write too much behind each other, what the first points read.
    """
    found = points_within(window, sums, extents, kept, max(sums, default=1))
    if prod(found.extents) * prod(sums) > MOST_WRITTEN:
        found = points_within(window, sums, extents, kept, 1)
    return found


def points_within(
    window: Window,
    sums: list[int],
    extents: list[int],
    kept: Mapping[int, int],
    side: int,
) -> Residency:
    """What points near the first one use most often: so many in each direction."""
    taps = window.taps(sums)
    chosen: set[tuple[int, Place]] = set()
    for operand, count in kept.items():
        found: dict[Place, int] = {}
        for tap in spread(taps, reach(side, extents, count)):
            place = window.place(operand, tap)
            found[place] = found.get(place, 0) + 1
        ranked = sorted(found, key=lambda place: (-found[place], place))
        chosen |= {(operand, place) for place in ranked[:count]}
    written = (0,) * len(extents)
    for tap in spread(taps, reach(side, extents, max((0, *kept.values())))):
        if any((n, window.place(n, tap)) in chosen for n in kept):
            pairs = zip(written, tap.points, strict=True)
            written = tuple(max(one, number + 1) for one, number in pairs)
    uses = dict.fromkeys(sorted(chosen), 0)
    for tap in spread(taps, list(written)):
        for key in ((operand, window.place(operand, tap)) for operand in kept):
            if key in uses:
                uses[key] += 1
    return Residency(written, uses)


def spread(taps: list[Tap], region: list[int]) -> list[Tap]:
    """The taps of all points of a region."""
    return [Tap(t.sums, at) for t, at in product(taps, product(*map(range, region)))]


def reach(side: int, extents: list[int], count: int) -> list[int]:
    """Points near the first one: so many in each direction, and rows of `count`."""
    found = [min(extent, side) for extent in extents]
    found[-1] = min(extents[-1], side + count)
    if len(found) > 1:
        found[-2] = min(extents[-2], max(found[-2], -(-count // extents[-1])))
    return found
