"""Which of a stage's loops its vector code has itself.

The innermost ones, in the form of a register tile (vector/vectorize_loops.py):

    for parallel axes: for axes that are summed over: points and lanes, side by side

All loops outside of these are made of the stage before it becomes vectors.  A stage
that is computed at the innermost of the serial ones, on just the points that stand side
by side there, becomes a part of that code: its results stay in registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from nanoloom.nest.loop import How, Loop, Placement
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement

IN_MEMORY = "the task's memory"
FURTHEST = 2  # numbers from lane to lane that are loaded as a vector, and left out


def outer_loops(nest: LoopNest, placement: Placement) -> tuple[Loop, ...]:
    """The loops around a stage's vector code."""
    loops = placement.loops
    if placement.block:
        first = min(placement.names.index(name) for name in placement.block)
        return loops[:first]
    inside = [s for s in nest.stages if at_of(nest, s)[:1] == (placement.stage,)]
    taken = {at_of(nest, s) for s in inside if not at_tile(nest, s)}
    place = len(loops)
    while place and is_point(loops[place - 1]):
        place -= 1
    while (
        place
        and loops[place - 1].is_reduction
        and reads_result_of(loops, place - 1)
        and (placement.stage, loops[place - 1].name) not in taken
    ):
        place -= 1
    while (
        place
        and not loops[place - 1].is_reduction
        and loops[place - 1].how is How.SERIAL
        and reads_result_of(loops, place - 1)
        and (placement.stage, loops[place - 1].name) not in taken
    ):
        place -= 1
    return loops[:place]


def at_of(nest: LoopNest, stage: Statement) -> tuple[str, ...]:
    """Inside of which loop of another stage one is computed, () for none."""
    return nest.placement(stage.name).at or ()


def at_tile(nest: LoopNest, stage: Statement) -> bool:
    """Whether a stage is computed on the points of the register tile that reads it."""
    placement = nest.placement(stage.name)
    if placement.at is None or placement.stored == IN_MEMORY:
        return False
    around = nest.placement(placement.at[0])
    behind = around.loops[around.names.index(placement.at[1]) + 1 :]
    if around.by or placement.by or not behind or not all(map(is_point, behind)):
        return False
    own = [x for x in placement.loops if not is_point(x)]
    points = all(x.trips == 1 for x in own if not x.is_reduction)
    if not points and not is_read_by_number(nest, stage):
        return False
    if not any(x.how is How.VECTOR for x in placement.loops):
        return False
    return not outer_loops(nest, placement) and all(
        reads_in_place(nest, reader, stage, placement)
        for reader in nest.consumers(stage.name)
    )


def is_read_by_number(nest: LoopNest, stage: Statement) -> bool:
    """Whether each number of a border is read by itself, wherever windows are."""
    if stage.inside is None:
        return False
    made = {write.buffer for write in stage.writes}
    return not any(
        loop.axis in x.axes
        for reader in nest.consumers(stage.name)
        for loop in nest.placement(reader.name).loops
        for x in reader.taken
        if loop.how is How.VECTOR and x.buffer in made
    )


def reads_in_place(
    nest: LoopNest, reader: Statement, stage: Statement, placement: Placement
) -> bool:
    """Whether a stage reads another one at its own points, and at the same tile.

    A border may be read wherever windows are.
    """
    assert placement.at is not None
    same = nest.placement(reader.name).at == placement.at and at_tile(nest, reader)
    if not same and reader.name != placement.at[0]:
        return False
    made = {write.buffer for write in stage.writes}
    taken = [x for x in reader.taken if x.buffer in made]
    if stage.inside is not None:  # a border: its vectors are loaded under masks
        loops = nest.placement(reader.name).loops
        vectors = [x.axis for x in loops if x.how is How.VECTOR]
        return all(x.follows_on(axis, FURTHEST) for x in taken for axis in vectors)
    axes = {axis.name for axis in reader.axes if not axis.is_reduction}
    return all(set(x.plain) == axes and len(x.plain) == len(axes) for x in taken)


def is_point(loop: Loop) -> bool:
    """Whether a loop's steps stand side by side, in registers."""
    if loop.how is How.VECTOR:
        return True
    return loop.how is How.UNROLLED and not loop.is_reduction


def reads_result_of(loops: tuple[Loop, ...], place: int) -> bool:
    """Whether vector code can have a loop over an axis: one that is not in blocks.

    Its steps are single points, or what stands side by side further in.
    """
    loop = loops[place]
    inner = [x for x in loops[place + 1 :] if x.axis == loop.axis]
    if loop.how is How.UNROLLED:
        return not inner
    return all(x.how is not How.SERIAL for x in inner) and loop.step == prod(
        map(width, inner)
    )


def width(loop: Loop) -> int:
    """Points of its axis that a loop side by side has."""
    if isinstance(loop.trips, int):
        return loop.trips
    return getattr(loop.trips, "count", 1) * loop.chains


def order(nest: LoopNest, placement: Placement) -> tuple[int, ...]:
    """The axes in the order of the loops of vector code; () if it has them so itself:

    axes of which some points stand side by side inside of others, vectors innermost.
    """
    stage = nest.stage(placement.stage)
    found = list(
        dict.fromkeys(stage.place(x.axis) for x in serial_loops(nest, placement))
    )
    kinds = [stage.axes[place].is_reduction for place in found]
    inner = [p for p, reduced in zip(found, kinds, strict=True) if reduced]
    outer = [p for p, reduced in zip(found, kinds, strict=True) if not reduced]
    points = [x for x in placement.loops if is_point(x)]
    *rows, last = [x for x in points if x.how is How.VECTOR] or [None]
    vectors = [stage.place(last.axis)] if last else []
    jammed = [stage.place(x.axis) for x in points if x.how is How.UNROLLED or x in rows]
    usual = sorted(outer, key=lambda p: (p in vectors, p in jammed, p))
    if outer == usual and inner == sorted(inner):
        return ()
    rest = [place for place in range(len(stage.axes)) if place not in found]
    return (*outer, *rest, *inner)


def serial_loops(nest: LoopNest, placement: Placement) -> list[Loop]:
    """The loops of vector code that are none of its points."""
    count = len(outer_loops(nest, placement))
    return [loop for loop in placement.loops[count:] if not is_point(loop)]


def lhs_producers(nest: LoopNest) -> set[tuple[str, str]]:
    """The loops that something is made in front of."""
    placed = [nest.placement(stage.name) for stage in nest.stages]
    return {(owner, loop) for each in placed for _, owner, loop in each.hoisted}


def groups(
    nest: LoopNest, placement: Placement, named: set[tuple[str, str]]
) -> Iterator[tuple[Loop, ...]]:
    """The loops around a stage's vector code, those together that one step makes.

    Of one kind, of axes in their order, with nothing between them.  named: loops that
    other steps know, the last ones of theirs.
    """
    taken = {nest.placement(s.name).at for s in nest.stages} | named
    places = nest.stage(placement.stage).place
    group: list[Loop] = []
    for loop in outer_loops(nest, placement):
        if group:
            before = group[-1]
            fits = places(before.axis) < places(loop.axis) and before.how is loop.how
            alone = loop.how is How.UNROLLED
            if alone or not fits or (placement.stage, before.name) in taken:
                yield tuple(group)
                group = []
        group.append(loop)
    if group:
        yield tuple(group)
