"""What a nest costs under a plan of fusions: work, and bytes at each level of memory.

    estimate(nest, plan, target)

The memory terms are counted, not timed.  Of each stage, the outermost loop is looked
for whose step touches no more than a cache holds: its bytes come into that cache once
for each step, and stay there over loops directly around it that do not move them, and
as far as the next step reads them, too.
What a fusion makes inside of its consumer's loop, and what fits there, is not moved;
nor is a temporary that fits as a whole.  Bytes are those of numbers, not of lines; what
two stages read one behind the other is counted twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nanoloom.nest.fusion import placed
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.plan import Fusion
from nanoloom.nest.statement import Statement
from nanoloom.nest.steps import (
    Step,
    axes_of,
    bytes_inside,
    computed,
    points,
    steps_around,
    steps_of,
    whole,
)
from nanoloom.target.facts import Cache, Target


@dataclass(frozen=True)
class Level:
    """A cache: how much a step of the nest keeps there, and what goes through.

    capacity: bytes of it.  working_set: bytes that the largest step touches which fits.
    moved: bytes that come into it from behind it, or leave it.
    """

    name: str
    capacity: int
    working_set: int
    moved: int


@dataclass(frozen=True)
class Estimate:
    """points: of all stages that read something, as often as they are computed.
    recomputed: those of them that were computed before."""

    points: int
    recomputed: int
    levels: tuple[Level, ...]

    def moved(self, level: str) -> int:
        """Bytes that come into a cache or leave it: "l1", "l2" or "l3"."""
        return next(x.moved for x in self.levels if x.name == level)


def estimate(nest: LoopNest, plan: Sequence[Fusion], target: Target) -> Estimate:
    """The cost of a nest with its producers computed where a plan says.

    nest: scheduled as far as it is.  plan: fusions that it does not have yet; () for
    the nest as it stands.
    """
    for fusion in plan:
        nest = placed(nest, fusion)
    stages = [stage for stage in nest.stages if works(nest, stage)]
    around = {stage.name: steps_of(nest, stage) for stage in stages}
    made = [computed(stage, around[stage.name]) for stage in stages]
    least = [points(whole(stage)) for stage in stages]
    again = [max(0, m - n) for m, n in zip(made, least, strict=True)]
    touched = {
        stage.name: [
            bytes_inside(nest, stage, each)
            for each in (whole(stage), *(step.sizes for step in around[stage.name]))
        ]
        for stage in stages
    }
    between = made_inside(nest)
    levels = [
        level(stages, around, touched, between, each)
        for each in capacities(target.caches)
    ]
    return Estimate(sum(made), sum(again), tuple(levels))


def works(nest: LoopNest, stage: Statement) -> bool:
    """Whether a stage is more than the numbers that another one begins with."""
    made = {write.buffer for write in stage.writes}
    reads = bool(stage.reads) or stage.inside is not None
    return reads or bool(made & set(nest.results))


def capacities(caches: Cache) -> list[tuple[str, int]]:
    """The caches of a core that there are, and their bytes."""
    found = ("l1", caches.l1d), ("l2", caches.l2), ("l3", caches.l3)
    return [(name, size) for name, size in found if size]


def level(
    stages: Sequence[Statement],
    around: Mapping[str, tuple[Step, ...]],
    touched: Mapping[str, Sequence[Mapping[str, int]]],
    between: Mapping[str, int],
    cache: tuple[str, int],
) -> Level:
    """The terms of one cache.

    touched: of each stage, bytes of all steps of each loop around it, and of one of the
    innermost.  between: bytes of temporaries (`made_inside`).
    """
    name, capacity = cache
    most = moved = 0
    for stage in stages:
        steps, own = around[stage.name], touched[stage.name]
        fits = (n for n, x in enumerate(own) if sum(x.values()) <= capacity)
        depth = next(fits, len(steps))
        most = max(most, sum(own[depth].values()))
        moved += sum(
            round(size * times(stage, buffer, steps[:depth], own))
            for buffer, size in own[depth].items()
            if between.get(buffer, capacity + 1) > capacity
        )
    return Level(name, capacity, most, moved)


def times(
    stage: Statement,
    buffer: str,
    outer: Sequence[Step],
    touched: Sequence[Mapping[str, int]],
) -> float:
    """How often what a step touches of a buffer comes into a cache.

    The loops directly around the step that do not move it find it there again; the
    next one, what two of its steps both touch.  touched: bytes of all steps of each
    loop, and of one of the innermost.
    """
    axes, found, stays = axes_of(stage, buffer), 1.0, True
    for place, step in reversed([*enumerate(outer)]):
        moves = bool(step.axes & axes)
        if moves and stays:
            all_steps, one = touched[place][buffer], touched[place + 1][buffer]
            found *= min(step.times, all_steps / one) if one else step.times
        elif not stays:
            found *= step.times
        stays = stays and not moves
    return found


def made_inside(nest: LoopNest) -> dict[str, int]:
    """Of each temporary, the bytes that there are at a time: all, or what is made
    inside of a loop of what reads it.  A cache that holds those holds the temporary."""
    found: dict[str, int] = {}
    for stage in nest.stages:
        around = steps_around(nest, stage)
        inside = around[-1].sizes if around else whole(stage)
        touched = bytes_inside(nest, stage, inside)
        for name in {write.buffer for write in stage.writes} - {*nest.results}:
            found[name] = min(touched[name], found.get(name, touched[name]))
    return found
