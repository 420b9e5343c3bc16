"""What the steps of a loop use again, and which of it so many registers keep.

A step touches places of an operand, one at each of its points.  From one step to the
next all places move by the same distance: 0 for what does not depend on the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Place = tuple[int, ...]


@dataclass(frozen=True)
class Link:
    """A number that is used at one point of a step, and next at another one.

    begin, end: the numbers of the points; ahead: `end` is one of the next step's.
    """

    begin: int
    end: int
    ahead: bool

    def length(self, points: int) -> int:
        """Points from one use to the next, of so many in a step."""
        return self.end - self.begin + points * self.ahead


def moved(place: Place, by: Place, steps: int = 1) -> Place:
    """A place so many steps further on."""
    return tuple(x + steps * far for x, far in zip(place, by, strict=True))


def links(places: Sequence[Place], shift: Place) -> list[Link]:
    """Each use whose number is used again in this step or in the next one.

    places: that the points of a step touch, in order; shift: how far they move.
    """
    found: list[Link] = []
    following = [moved(place, shift) for place in places]
    for begin, place in enumerate(places):
        if place in places[begin + 1 :]:
            found.append(Link(begin, places.index(place, begin + 1), False))
        elif place in following:
            found.append(Link(begin, following.index(place), True))
    return found


def kept_in_registers(
    places: Sequence[Place], shift: Place, count: int
) -> tuple[Link, ...]:
    """The links that so many registers can have, the shortest first.

    A register has one number between its uses; where one ends another may begin.
    """
    used = [0] * len(places)
    chosen: list[Link] = []
    ranked = sorted(
        links(places, shift), key=lambda x: (x.length(len(places)), x.begin)
    )
    for link in ranked:
        gaps = [n % len(places) for n in reused_between(link, len(places))]
        wanted = [used[n] + gaps.count(n) for n in range(len(places))]
        if max(wanted) <= count:
            used = wanted
            chosen.append(link)
    return tuple(chosen)


def reused_between(link: Link, points: int) -> range:
    """The gaps behind points in which a register has the number of a link."""
    return range(link.begin, link.begin + link.length(points))
