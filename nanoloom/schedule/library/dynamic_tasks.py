"""Tasks that make a border of images of any size: so much of a row as a sample has.

What a task has in memory is of a size that is known (vector/temporaries.py).
"""

from __future__ import annotations

from dataclasses import replace

from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Axis
from nanoloom.schedule.language import Directive, Parallel, Schedule, StoreAt


def with_ends(schedule: Schedule, nest: LoopNest) -> Schedule:
    """A schedule and its candidates, whose tasks have no whole axis of any extent."""
    if not any(axis.is_sample for pad in nest.pads for axis in pad.axes):
        return schedule
    return schedule.each(lambda words: with_end(words, nest))


def with_end(words: tuple[Directive, ...], nest: LoopNest) -> tuple[Directive, ...]:
    """The words, those of tasks with numbers, where a task makes a border."""
    pads = [pad.name for pad in nest.pads]
    made = (word.stage in pads for word in words if isinstance(word, StoreAt))
    if not any(made):
        return words
    return tuple(
        with_numbers(word, nest) if isinstance(word, Parallel) else word
        for word in words
    )


def with_numbers(word: Parallel, nest: LoopNest) -> Parallel:
    axes = nest.stage(word.stage).axes
    return replace(word, sizes=tuple(map(size_of, word.sizes, axes)))


def size_of(size: int, axis: Axis) -> int:
    """Of a task along an axis; 0 is all of it."""
    whole = not size and axis.is_sample and not axis.is_reduction
    return axis.extent if whole and isinstance(axis.extent, int) else size
