"""Which taps of the windows over an axis of an image meet more than its border.

Tap k of the window at n is at n * step + k * apart - low of the image.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


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

    def met(self) -> np.ndarray:
        """Taps that are within the image in any window, in order."""
        far = (self.result - 1) * self.step
        first = max(self.first, -((far - self.low) // self.apart))
        last = min(self.last, (self.size - 1 + self.low) // self.apart)
        taps = np.arange(first, last + 1)
        place = taps * self.apart - self.low
        windows = np.maximum(0, -(place // self.step))  # until one is within
        met = (windows < self.result) & (place + windows * self.step < self.size)
        return taps[met]

    def within(self) -> Taps:
        """The same without taps that meet the border only; one where all do.

        One that meets it stays where windows would begin within the image without it,
        or there were room for another window behind the last.
        """
        met = self.met()
        first, last = (met[0], met[-1]) if met.size else (self.first, self.first)
        few = replace(self, first=int(first), last=int(last))
        while few.begin < 0:
            few = replace(few, first=few.first - 1)
        while few.behind <= -self.step:
            few = replace(few, last=few.last + 1)
        return few

    def alone(self) -> Taps:
        """The same of what a single window reads of an image.

        Taps that are apart read it where it is, and so does a single one.
        """
        if self.result > 1 or self.apart > 1 or self.count == 1:
            return self
        return replace(self, size=min(self.size, max(1, self.count - self.begin)))
