"""Blocks of a stage: the kernel's tasks, and tiles inside of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nanoloom.nest.loop import How, Loop, halves
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.directives.compute_at import (
    at_loop,
    begins_outside,
    read_outside,
)
from nanoloom.schedule.directives.directive import (
    Directive,
    loop_of,
    refuse,
    require_number,
    require_tuple,
    stage_of,
)
from nanoloom.schedule.directives.loops import require_not_padded

ALL = ("all",)  # of the stages in front of one


@dataclass(frozen=True)
class Parallel(Directive):
    """for i in 0..n: f(i)  ->  forall io in 0..n/size: for i in 0..size: f(io*size + i)

    The forall's iterations are the kernel's tasks.  sizes: per axis of the stage, 0 for
    one that is left whole.  fuse: producers are computed inside (ALL, or these stages).
    slowest: the axis that changes most rarely from task to task, so that what depends
    on it only stays in the cache.
    """

    stage: str
    sizes: tuple[int, ...]
    fuse: tuple[str, ...] = ()
    slowest: int | None = None

    def apply(self, nest: LoopNest) -> LoopNest:
        stage = stage_of(self, nest, self.stage)
        placement = nest.placement(self.stage)
        if placement.at is not None:
            refuse(self, f"{self.stage} is computed inside of another stage's loops")
        if placement.names != stage.names:
            refuse(self, f"{self.stage} has other loops already: tasks come first")
        require_tuple(self, "sizes", self.sizes)
        for axis, size in zip(stage.axes, self.sizes, strict=False):
            if size and axis.is_reduction:
                refuse(self, f"axis {axis.name} is summed over: tasks cannot share it")
        return blocks(self, nest, stage, How.PARALLEL)


@dataclass(frozen=True)
class Tile(Directive):
    """for i in 0..n: f(i)  ->  for io in 0..n/size: for i in 0..size: f(io*size + i)

    Inside the loops over blocks that were made before.  sizes: per axis of the stage,
    0 for one that is left whole; fuse: the producers to compute inside.
    """

    stage: str
    sizes: tuple[int, ...]
    fuse: tuple[str, ...] = ()

    def apply(self, nest: LoopNest) -> LoopNest:
        return blocks(self, nest, stage_of(self, nest, self.stage), How.SERIAL)


def blocks(
    word: Parallel | Tile, nest: LoopNest, stage: Statement, how: How
) -> LoopNest:
    """The nest with loops over blocks around the loops of a stage."""
    require_tuple(word, "sizes", word.sizes)
    require_tuple(word, "fuse", word.fuse)
    if len(word.sizes) > len(stage.axes):
        axes = ", ".join(stage.names)
        refuse(word, f"{stage.name} has {len(stage.axes)} axes ({axes}), not more")
    placement = nest.placement(stage.name)
    outer: list[Loop] = []
    for place, size in enumerate(word.sizes):
        require_number(word, "a size", size, least=0)
        if not size:
            continue
        axis = stage.names[place]
        loop = loop_of(word, placement, axis)
        if not isinstance(loop.trips, int):
            refuse(word, f"the extent of {axis} is no number: {loop.trips}")
        require_not_padded(word, loop)
        name = placement.fresh(f"{axis}o")
        block, inner = halves(loop, size, name, axis)
        slowest = isinstance(word, Parallel) and word.slowest == place
        outer.append(replace(block, how=how, slowest=slowest))
        placement = placement.replaced(axis, [inner])
    names = [loop.name in stage.names for loop in placement.loops]
    at = names.index(True) if True in names else len(names)
    loops = (*placement.loops[:at], *outer, *placement.loops[at:])
    nest = nest.moved(replace(placement, loops=loops))
    return fused(word, nest, stage.name, outer[-1].name) if outer else nest


def fused(word: Parallel | Tile, nest: LoopNest, stage: str, loop: str) -> LoopNest:
    """The nest with producers inside of a loop; of all those that can be there."""
    for name in word.fuse if word.fuse != ALL else ():
        stage_of(word, nest, name)
    wanted = nest.upstream(stage) if word.fuse == ALL else nest.stages
    for made in reversed(wanted):  # what reads a stage goes in before it
        name = made.name
        if word.fuse != ALL and name not in word.fuse:
            continue
        placement = nest.placement(name)
        free = placement.names == made.names and not placement.stored
        stays = read_outside(nest, name, stage, loop) or begins_outside(
            nest, name, stage, loop
        )
        if word.fuse != ALL or (free and not stays):
            nest = at_loop(word, nest, name, stage, loop)
    return nest
