"""Taps of windows that meet nothing but a border are told from the others."""

from __future__ import annotations

from itertools import product

from nanoloom.linalg.builder.window import extent
from nanoloom.linalg.builder.window_taps import Taps


def places(axis: Taps, tap: int) -> list[int]:
    """Where in the image a tap of each window is."""
    first = tap * axis.apart - axis.low
    return [first + n * axis.step for n in range(axis.result)]


def test_each_small_axis() -> None:
    """What is cut off meets the border alone; windows are as many, where they were."""
    cut = 0
    ranges = (1, 2, 3, 6), (1, 2, 3, 5), (1, 2, 3), (1, 2, 4), range(6), range(6)
    for size, taps, step, apart, low, high in product(*ranges):
        span = (taps - 1) * apart + 1
        result = extent(size, low, high, span, step, False)
        if result < 1:
            continue
        whole = Taps(size, result, step, apart, low, 0, taps - 1)
        few, met = whole.within(), whole.met()
        for tap in range(taps):
            inside = [n for n in places(whole, tap) if 0 <= n < size]
            assert (tap in met) == bool(inside)
            assert few.first <= tap <= few.last or not inside
        before, behind = few.begin, max(few.behind, 0)
        span = (few.count - 1) * apart + 1
        assert before >= 0
        assert extent(size, before, behind, span, step, False) == result
        cut += few != whole
    assert cut > 500, "hardly an axis would be seen"
