"""Rows of a few vectors that are combined across lanes, some of them at a time.

    y[i] = max over k of x[i, k]   ->   y[i .. i + 4], whose lanes combine together

Combining the lanes of a vector takes as many steps as a short row has vectors.  Rows
share them (`ReduceJointly`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nanoloom.nest.extent import Extent, Lanes
from nanoloom.nest.granularity import JAMMED
from nanoloom.nest.statement import Statement
from nanoloom.schedule.language import UnrollAndJam, Vectorize
from nanoloom.schedule.library.vector_axis import axis_of
from nanoloom.schedule.library.vectors import Words, is_scalable, lanes_of, packs_bits
from nanoloom.target.facts import Target

# Rows are short that have fewer vectors than points that share what they read have
# accumulators: four chains of each.
VECTORS = JAMMED * JAMMED


def with_joint_rows(
    words: Sequence[Words], stages: Sequence[Statement], target: Target
) -> tuple[Words, ...] | None:
    """The vectors of stages with points of short rows, which are chains themselves.

    None if no stage combines lanes, or one that does has no short rows.
    """
    summed = [stage for stage in stages if combines_lanes(stage, target)]
    rows = {stage.name: row_axis(stage, target) for stage in summed}
    if not rows or None in rows.values():
        return None
    made: list[Words] = []
    extents = {
        stage.name: dict(zip(stage.names, stage.axes, strict=True)) for stage in stages
    }
    for word in words:
        if not isinstance(word, Vectorize):
            made.append(word)
            continue
        word = replace(
            word, lanes=narrowed(word.lanes, extents[word.stage][word.loop].extent)
        )
        row = rows.get(word.stage)
        if row is None:
            made.append(word)
        else:
            made += replace(word, chains=1), UnrollAndJam(word.stage, row, JAMMED)
    return tuple(made)


def narrowed(lanes: Lanes, extent: Extent) -> Lanes:
    """A vector as long as a row that is shorter, at least so many lanes as rows."""
    if lanes.scalable or not isinstance(extent, int):
        return lanes
    whole = 1 << (max(extent, JAMMED) - 1).bit_length()
    return Lanes(min(lanes.count, whole))


def combines_lanes(stage: Statement, target: Target) -> bool:
    """Whether a stage's vectors lie along what it reduces."""
    axis = axis_of(stage, target)
    return axis is not None and stage.axes[axis].is_reduction


def row_axis(stage: Statement, target: Target) -> str | None:
    """The axis along which the results of short rows lie side by side."""
    axis, (written, *others) = axis_of(stage, target), stage.writes
    last = written.plain[-1] if written.plain else None
    if axis is None or last is None or others or stage.has_functions:
        return None
    if packs_bits(stage, axis) or is_scalable(stage, axis, target):
        return None
    length, count = stage.axes[axis].extent, stage.axes[stage.place(last)].extent
    if not isinstance(length, int) or not isinstance(count, int) or count < JAMMED:
        return None
    return last if length <= VECTORS * lanes_of(stage, target) else None
