"""Which taps of the windows over an axis of an image meet more than its border.

Tap k of the window at n is at n * step + k * apart - low of the image.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nanoloom.nest.guard import Guard


@dataclass(frozen=True)
class Taps:
    """An axis of an image, and a window's taps along it.

    size, result: pixels of the image and of what is made.  low: how wide the border in
    front is.  first, last: of the taps.
    """

    size: int
    result: int
    step: int
    apart: int
    low: int
    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    @property
    def begin(self) -> int:
        """The border in front of the first tap; below zero within the image."""
        return self.low - self.first * self.apart

    @property
    def behind(self) -> int:
        """The border that the last window reaches; below zero within the image."""
        reach = (self.result - 1) * self.step + (self.count - 1) * self.apart + 1
        return reach - self.size - self.begin

    def met(self) -> list[int]:
        """Taps that are within the image in any window, in order."""
        guards = {
            tap: Guard(tap * self.apart - self.low, self.step, self.size)
            for tap in range(self.first, self.last + 1)
        }
        return [tap for tap, guard in guards.items() if guard.steps(self.result)]

    def within(self) -> Taps:
        """The same without taps that meet the border only; one where all do.

        One that meets it stays where windows would begin within the image without it,
        or there were room for another window behind the last.
        """
        met = self.met()
        first, last = (met[0], met[-1]) if met else (self.first, self.first)
        few = replace(self, first=first, last=last)
        while few.begin < 0:
            few = replace(few, first=few.first - 1)
        while few.behind <= -self.step:
            few = replace(few, last=few.last + 1)
        return few
