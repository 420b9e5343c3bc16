"""Slice along axes that are sizes: which begins, ends and steps are the same for all.

A step of k takes (n + k - 1) // k of n elements, which is a floor (fit_floors.py).
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from nanoloom.dynamic.dynamic_refusal import NotDynamic, Others
from nanoloom.dynamic.fit_floors import Samples, divided
from nanoloom.dynamic.sample_walk import Visit
from nanoloom.dynamic.samples import are_of_images
from nanoloom.dynamic.visited_numbers import (
    Limits,
    Numbers,
    is_alike,
    less,
    numbers,
    sizes,
)

END = 2**31 - 1  # and beyond: where an axis ends


def cut(visits: Sequence[Visit], _: Set[str], samples: Samples) -> Limits:
    """Begins and ends inside, along axes that are sizes.

    Or all that there is up to a place that no sample reaches, and no other size may.
    """
    starts, ends = numbers(visits, 1), numbers(visits, 2)
    if starts is None or ends is None:
        raise NotDynamic("only a run knows where it begins")
    axes = numbers(visits, 3) or [(n,) * len(visits) for n in range(len(starts))]
    steps = numbers(visits, 4) or [(1,) * len(visits)] * len(starts)
    made: Limits = []
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        extent = sizes(visits, 0, axis[0])
        if is_alike(extent) and is_alike(start) and is_alike(end):
            continue
        if not is_alike(axis) or not is_alike(step):
            raise NotDynamic("axes or steps that are sizes")
        parts = forward if step[0] > 0 else backward
        limits, taken = parts(start, end, extent)
        made += limits
        around = tuple(n + abs(step[0]) - 1 for n in taken)
        require_floor(around, abs(step[0]), samples)
    if any(min(row) < 0 for row in made):
        raise NotDynamic("a part that may end where its axis does")
    return made


def forward(start: Numbers, end: Numbers, extent: Numbers) -> tuple[Limits, Numbers]:
    """What may not be below 0, and how many elements steps go over."""
    begin = inside(start, extent)
    whole = all(n >= e for n, e in zip(end, extent, strict=True))
    made = [less(end, extent)] if whole and min(end) < END else []
    stop = extent if whole else inside(end, extent)
    return [*made, begin, less(stop, begin), less(extent, stop)], less(stop, begin)


def backward(start: Numbers, end: Numbers, extent: Numbers) -> tuple[Limits, Numbers]:
    """The same for steps below 0, from the last element or one inside to the first."""
    last = tuple(n - 1 for n in extent)
    begin = last if min(start) >= END else inside(start, extent)
    first = max(end) <= -END
    stop = (-1,) * len(extent) if first else inside(end, extent)
    made = [begin, less(last, begin), less(begin, stop)]
    return made if first else [*made, stop], less(begin, stop)


def require_floor(numbers: Numbers, step: int, samples: Samples) -> None:
    """Samples get a floor for what is some steps apart."""
    if step > 1:
        if not are_of_images(samples):
            raise NotDynamic("steps along a size", others=Others.OF_IMAGES)
        divided(numbers, step, samples)


def inside(places: Numbers, extent: Numbers) -> Numbers:
    """Places on an axis, those below 0 counted from its end."""
    if len({n < 0 for n in places}) > 1:
        raise NotDynamic("places on both sides")
    behind = places[0] < 0
    return tuple(n + e if behind else n for n, e in zip(places, extent, strict=True))
