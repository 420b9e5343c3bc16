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
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.language import UnrollAndJam, Vectorize
from nanoloom.schedule.library.vector_axis import axis_of
from nanoloom.schedule.library.vectors import Words, is_scalable, lanes_of, packs_bits
from nanoloom.target.facts import Target

# Rows are short that have fewer vectors than points that share what they read have
# accumulators: four chains of each.
VECTORS = JAMMED * JAMMED


def short_rows(stages: Sequence[Statement], target: Target) -> dict[str, str] | None:
    """The axis along which the results of short rows lie side by side, of each stage
    that combines lanes; None if there is none, or one has longer rows."""
    rows = {
        stage.name: row_axis(stage, target)
        for stage in stages
        if combines_lanes(stage, target)
    }
    known = {name: row for name, row in rows.items() if row is not None}
    return known if known and len(known) == len(rows) else None


def with_short_rows(
    words: Sequence[Words], nest: LoopNest, rows: dict[str, str], count: int
) -> tuple[Words, ...]:
    """The words with points of short rows, which are chains themselves.

    count: rows that are computed together; few are combined one by one, in the same
    order: a row's number does not depend on how many there are.
    """
    made: list[Words] = []
    for word in words:
        if not isinstance(word, Vectorize):
            made.append(word)
            continue
        stage = nest.stage(word.stage)
        extent = stage.axes[stage.place(word.loop)].extent
        word = replace(word, lanes=narrowed(word.lanes, extent))
        row = rows.get(word.stage)
        made.append(word if row is None else replace(word, chains=1))
        if row is not None:
            points = stage.axes[stage.place(row)].extent
            if isinstance(points, int) and min(points, count) >= JAMMED:
                made.append(UnrollAndJam(word.stage, row, JAMMED))
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
    if axis is None or last is None or others:
        return None
    if packs_bits(stage, axis) or is_scalable(stage, axis, target):
        return None
    length, count = stage.axes[axis].extent, stage.axes[stage.place(last)].extent
    if not isinstance(length, int) or not isinstance(count, int):
        return None
    return last if length <= VECTORS * lanes_of(stage, target) else None
