"""The loops around a stage as steps: how often each runs, and what one step touches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from nanoloom.nest.contraction import bits
from nanoloom.nest.extent import Extent, Lanes
from nanoloom.nest.footprint import Sizes, footprint, larger, read_of
from nanoloom.nest.index import Access
from nanoloom.nest.loop import Loop
from nanoloom.nest.nest import LoopNest, Role
from nanoloom.nest.statement import Statement


@dataclass(frozen=True)
class Step:
    """One loop around a stage, its own or one of the stage that it is computed inside.

    times: how often it runs in a step of the loop around it; a last block that is
    smaller counts as the part that it is.  axes: of the stage, those along which
    a step moves.  sizes: points of each axis of the stage inside of a step.
    """

    loop: str
    times: float
    axes: frozenset[str]
    sizes: Sizes


def number(extent: Extent) -> int:
    """Of points, at most; at least one, so that nothing is divided by none."""
    if isinstance(extent, int):
        return max(1, extent)
    return max(1, extent.count if isinstance(extent, Lanes) else extent.most)


def whole(stage: Statement) -> Sizes:
    """All points of a stage."""
    return {axis.name: axis.extent for axis in stage.axes}


def points(sizes: Sizes) -> int:
    return prod(map(number, sizes.values()))


def computed(stage: Statement, steps: Sequence[Step]) -> int:
    """Points of a stage in all steps together, those again that several make."""
    inside = steps[-1].sizes if steps else whole(stage)
    return round(prod(step.times for step in steps) * points(inside))


def steps_of(nest: LoopNest, stage: Statement) -> tuple[Step, ...]:
    """All loops around a stage's points, outermost first."""
    placement = nest.placement(stage.name)
    outer = steps_around(nest, stage)
    inside = dict(outer[-1].sizes) if outer else whole(stage)
    loops = placement.loops
    if placement.by:  # a nanokernel's points stand side by side inside of its sums
        ends = (n for n, loop in enumerate(loops, 1) if loop.step > 1)
        tile = max(ends, default=0)  # behind the loops over tiles
        points = sorted(loops[tile:], key=lambda loop: not loop.is_reduction)
        loops = (*loops[:tile], *points)
    return (*outer, *blocks(loops, inside))


def steps_around(nest: LoopNest, stage: Statement) -> tuple[Step, ...]:
    """The loops of other stages that a stage is computed inside of."""
    at = nest.placement(stage.name).at
    if at is None:
        return ()
    consumer, loop = at
    found: list[Step] = []
    for step in steps_of(nest, nest.stage(consumer)):
        sizes = read_inside(nest, stage, consumer, step.sizes)
        moved = moved_axes(nest, stage, consumer, step.axes)
        found.append(Step(step.loop, step.times, moved, sizes))
        if step.loop == loop:
            break
    return tuple(found)


def read_inside(nest: LoopNest, stage: Statement, consumer: str, sizes: Sizes) -> Sizes:
    """Points of a stage that so many of a consumer read, and all that is between."""
    if stage.name == consumer:
        return sizes
    found: Sizes = {}
    for reader in nest.consumers(stage.name):
        inside = read_inside(nest, reader, consumer, sizes)
        for axis, extent in read_of(stage, reader, inside).items():
            found[axis] = larger(found.get(axis, 0), extent)
    return whole(stage) | found


def moved_axes(
    nest: LoopNest, stage: Statement, consumer: str, axes: frozenset[str]
) -> frozenset[str]:
    """The axes of a stage that are elsewhere where axes of a consumer are."""
    if stage.name == consumer:
        return axes
    made = {write.buffer: write.plain for write in stage.writes}
    found: set[str] = set()
    for reader in nest.consumers(stage.name):
        moving = moved_axes(nest, reader, consumer, axes)
        for read in reader.taken:
            pairs = zip(made.get(read.buffer, ()), read.indices, strict=False)
            found |= {a for a, index in pairs if a and moving & set(index.axes)}
    return frozenset(found)


def blocks(loops: Iterable[Loop], sizes: Sizes) -> list[Step]:
    """Loops over points of axes, of which there are so many."""
    found: list[Step] = []
    for loop in loops:
        before, step = number(sizes[loop.axis]), loop.step
        times = max(1.0, before / step)
        sizes = {**sizes, loop.axis: step}
        found.append(Step(loop.name, times, frozenset([loop.axis]), sizes))
    return found


def accesses(stage: Statement) -> tuple[Access, ...]:
    """All that a stage reads and writes in memory."""
    return (*stage.taken, *stage.writes)


def bytes_inside(nest: LoopNest, stage: Statement, sizes: Sizes) -> dict[str, int]:
    """Bytes of each buffer that so many points of a stage touch."""
    found: dict[str, int] = {}
    for access in accesses(stage):
        buffer = nest.buffer(access.buffer)
        if buffer.role is Role.SCALAR:
            continue
        pairs = zip(access.indices, buffer.shape, strict=True)
        extents = [number(footprint(index, sizes, most)) for index, most in pairs]
        size = -(-prod(extents) * bits(buffer.element) // 8)
        found[buffer.name] = max(size, found.get(buffer.name, 0))
    return found


def axes_of(stage: Statement, buffer: str) -> frozenset[str]:
    """The axes of a stage that decide where in a buffer it is."""
    used = (access.axes for access in accesses(stage) if access.buffer == buffer)
    return frozenset().union(*used)
