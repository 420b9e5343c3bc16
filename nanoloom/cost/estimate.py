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
    levels = [level(nest, stages, around, each) for each in capacities(target.caches)]
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
    nest: LoopNest,
    stages: Sequence[Statement],
    around: dict[str, tuple[Step, ...]],
    cache: tuple[str, int],
) -> Level:
    """The terms of one cache."""
    name, capacity = cache
    kept = made_inside(nest, capacity)
    most = moved = 0
    for stage in stages:
        steps = around[stage.name]
        sizes = [whole(stage), *(step.sizes for step in steps)]
        touched = [bytes_inside(nest, stage, each) for each in sizes]
        fits = (n for n, x in enumerate(touched) if sum(x.values()) <= capacity)
        depth = next(fits, len(steps))
        most = max(most, sum(touched[depth].values()))
        moved += sum(
            round(size * times(stage, buffer, steps[:depth], touched))
            for buffer, size in touched[depth].items()
            if buffer not in kept
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


def made_inside(nest: LoopNest, capacity: int) -> set[str]:
    """The temporaries of which a cache holds as much as there is at a time: all, or
    what is made inside of a loop of what reads them."""
    found: set[str] = set()
    for stage in nest.stages:
        around = steps_around(nest, stage)
        inside = around[-1].sizes if around else whole(stage)
        touched = bytes_inside(nest, stage, inside)
        made = {write.buffer for write in stage.writes} - {*nest.results}
        found |= {name for name in made if touched[name] <= capacity}
    return found
