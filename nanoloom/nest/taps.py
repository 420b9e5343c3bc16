"""The points of one step through a stage, and where each reads and writes.

    y[x] += a[s*x + r] * w[r]     step x: the taps r of the window

Operands are numbered from 0, the result is behind the last one; dimensions are the
numbers of a stage's axes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby, product

from nanoloom.nest.reuse import Link, Place, kept_in_registers, moved
from nanoloom.nest.statement import Statement


@dataclass(frozen=True)
class Tap:
    """A point of a step: where in the sums, and how far from the step's own place."""

    sums: tuple[int, ...]
    points: tuple[int, ...]


@dataclass(frozen=True)
class Window:
    """What a step goes over.

    anchor: the operand whose numbers stay.  points, sums: dimensions, outermost first.
    factors: of each operand and dimension, how far its place moves.
    """

    anchor: int
    points: tuple[int, ...]
    sums: tuple[int, ...]
    factors: tuple[tuple[Place, ...], ...]

    @classmethod
    def of(
        cls,
        stage: Statement,
        anchor: int,
        points: tuple[int, ...],
        sums: tuple[int, ...],
    ) -> Window:
        """Of a stage whose places are sums of axes."""
        operands = (*stage.reads, *stage.writes)
        factors = tuple(
            tuple(
                tuple(index.factor(axis) or 0 for index in x.indices)
                for axis in stage.names
            )
            for x in operands
        )
        return cls(anchor, points, sums, factors)

    @property
    def result(self) -> int:
        return len(self.factors) - 1

    def moves(self, operand: int) -> bool:
        """Whether it is another number at another point."""
        return any(any(self.factors[operand][dim]) for dim in self.points)

    @property
    def stays_still(self) -> bool:
        """Whether all points share the anchor: the sums are outside of them."""
        return self.anchor != self.result and not self.moves(self.anchor)

    def place(self, operand: int, tap: Tap) -> Place:
        """Of an operand at a tap, from where the step is."""
        factors = self.factors[operand]
        at: Place = (0,) * len(factors[0])
        dims, numbers = (*self.sums, *self.points), (*tap.sums, *tap.points)
        for dim, number in zip(dims, numbers, strict=True):
            at = moved(at, factors[dim], number)
        return at

    def delays(self, sums: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """Of each of the points' dimensions: how many steps a tap lies behind, so that
        its anchor is that of the step, and where in the step the anchor is."""
        found: list[tuple[int, int]] = []
        reach = self.place(self.anchor, Tap(sums, (0,) * len(self.points)))
        for dim in self.points:
            steps = self.factors[self.anchor][dim]
            along = [n for n, step in enumerate(steps) if step]
            still = self.anchor == self.result or not along
            found.append((0, 0) if still else divmod(reach[along[0]], steps[along[0]]))
        return tuple(found)

    def taps(self, extents: Iterable[int]) -> list[Tap]:
        """All points of a step.  extents: of the sums."""
        numbers = product(*(range(extent) for extent in extents))
        return [
            Tap(sums, tuple(-back for back, _ in self.delays(sums))) for sums in numbers
        ]

    def groups(self, taps: Iterable[Tap], level: int) -> list[list[Tap]]:
        """Taps by the place of their anchor in a step of one of the points' loops."""

        def phase(tap: Tap) -> int:
            return self.delays(tap.sums)[level][1]

        return [list(group) for _, group in groupby(sorted(taps, key=phase), phase)]

    def in_order(self, taps: Iterable[Tap]) -> list[Tap]:
        """The taps of a step of the innermost loop: the anchor's places one behind the
        other, and for each of them the results as they lie."""
        if self.anchor == self.result:
            return sorted(taps, key=lambda tap: tap.sums)
        last = len(self.points) - 1
        return [
            tap
            for group in self.groups(taps, last)
            for tap in sorted(group, key=lambda t: (self.place(self.result, t), t.sums))
        ]

    def links(self, taps: list[Tap], operand: int, count: int) -> tuple[Link, ...]:
        """What `count` registers keep of an operand from one use to the next."""
        places = [self.place(operand, tap) for tap in taps]
        return kept_in_registers(places, self.factors[operand][self.points[-1]], count)
