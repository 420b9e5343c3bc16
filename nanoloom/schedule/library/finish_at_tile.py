"""What follows a sum, computed on its register tile.

    for tile of last's points: { sums = ...;  between = f(sums);  last = g(between) }

Nothing between the sum and the last stage is in memory: the tile is stored once.
"""

from __future__ import annotations

from collections.abc import Mapping

from nanoloom.nest.extent import Lanes
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.language import (
    ComputeAt,
    Directive,
    Reorder,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.schedule.library.vectors import is_scalable, lanes_of, width
from nanoloom.target.facts import Target


def at_tile(
    nest: LoopNest,
    sums: Statement,
    last: Statement,
    lanes: Lanes,
    jam: Mapping[int, int],
) -> tuple[Directive, ...]:
    """The words for a sum and all that follows; for the sum alone if it is the last.

    lanes: along the last axis of the results.  jam: of axes of the results, by their
    places, how many points (of the last one, vectors) are computed at once.
    """
    words: list[Directive] = list(points(last, lanes, jam)) if sums != last else []
    if sums != last:
        inside = [s for s in nest.stages if s != last and s.inside is None]
        column = last.names[len(last.axes) - 1]
        words += [ComputeAt(s.name, last.name, column) for s in reversed(inside)]
        for stage in inside:
            words += points(stage, lanes, jam)
        for stage in nest.pads:
            words += points(stage, lanes, {})
        return tuple(words)
    for stage in nest.stages:
        words += points(stage, lanes, jam if stage == sums else {})
    return tuple(words)


def points(
    stage: Statement, lanes: Lanes, jam: Mapping[int, int]
) -> tuple[Reorder | Vectorize | UnrollAndJam, ...]:
    """The words for the points of a stage, its sums inside of all others."""
    names = [axis.name for axis in stage.axes if not axis.is_reduction]
    inside = [*names, *(axis.name for axis in stage.axes if axis.is_reduction)]
    order = (Reorder(stage.name, tuple(inside)),) if inside != list(stage.names) else ()
    return (
        *order,
        Vectorize(stage.name, names[-1], lanes),
        *(UnrollAndJam(stage.name, names[p], n) for p, n in jam.items() if n > 1),
    )


def is_finished(nest: LoopNest, sums: Statement) -> bool:
    """Whether all that follows a sum can be computed on its tile, in one vector each.

    Every stage is at the sum's own points: what it starts from, and what reads it at
    the same place.  Pads in front of it are in memory.
    """
    parallel = [axis for axis in sums.axes if not axis.is_reduction]
    extents = tuple(axis.extent for axis in parallel)
    made = {write.buffer for stage in nest.stages for write in stage.writes}
    before = nest.stages[: nest.stages.index(sums)]
    if any(stage.reads for stage in before) or not parallel:
        return False
    for stage in nest.stages:
        if stage == sums or stage.inside is not None:
            continue
        names = stage.names
        if stage.is_reduction or not stage.lanewise or stage.extents != extents:
            return False
        taken = [*stage.writes, *(x for x in stage.reads if x.buffer in made)]
        if any(access.plain != names for access in taken):
            return False
        if not all(x.lies_along(names[-1]) for x in stage.reads):
            return False
    return True


def lanes_at_tile(
    nest: LoopNest, sums: Statement, target: Target, count: int | None = None
) -> Lanes:
    """Lanes that all stages of a tile can have: scalable only if each can be.

    count: of a vector, without it those of a register.
    """
    stages = [s for s in nest.stages if s.inside is None]
    columns = [[n for n, x in enumerate(s.axes) if not x.is_reduction] for s in stages]
    pairs = zip(stages, columns, strict=True)
    scalable = all(x and is_scalable(stage, x[-1], target) for stage, x in pairs)
    return width(count or lanes_of(sums, target), scalable)
