"""The vector axis and width of stages that no nanokernel takes."""

from __future__ import annotations

from collections.abc import Iterable

from nanoloom.nest.contraction import bits
from nanoloom.nest.extent import Lanes
from nanoloom.nest.granularity import JAMMED
from nanoloom.nest.statement import Statement
from nanoloom.schedule.language import Reorder, UnrollAndJam, Vectorize
from nanoloom.schedule.library.vector_axis import (
    GROUPED,
    axis_of,
    has_distance,
    is_alone,
    is_sliding,
    vector_axis,
)
from nanoloom.target.facts import Target

Words = Reorder | UnrollAndJam | Vectorize
HALVES = ("f16", "bf16")  # computed in f32
BYTE = bits("u8")


def vectors(stages: Iterable[Statement], target: Target) -> tuple[Words, ...]:
    """Full vectors along the axis of each stage that is contiguous, sums inside."""
    found: list[Words] = []
    stages = tuple(stages)
    group, alone = group_of(stages, target), is_alone(stages)
    for stage in stages:
        axis = axis_of(stage, target, alone=alone)
        if axis is not None:
            inside = sorted(stage.axes, key=lambda each: each.is_reduction)
            if inside != list(stage.axes):
                found.append(Reorder(stage.name, tuple(x.name for x in inside)))
            chains = JAMMED if stage.axes[axis].is_reduction else 1
            if is_scalable(stage, axis, target):
                lanes = width(group * lanes_of(stage, target), scalable=True)
                chains = max(1, chains // group)
            else:
                lanes = Lanes(lanes_of(stage, target))
            if packs_bits(stage, axis):
                lanes, chains = Lanes(BYTE), 1
            found.append(Vectorize(stage.name, stage.names[axis], lanes, chains))
            if packs_bits(stage, axis):
                found += bytes_together(stage)
            if lanes.scalable and group == 1 and is_short(stage):
                found.append(UnrollAndJam(stage.name, stage.names[axis], GROUPED))
            found += other_axis(stage, axis)
    return tuple(found)


def other_axis(stage: Statement, axis: int) -> tuple[UnrollAndJam, ...]:
    """A short axis inside of that of the vectors: they share what they read."""
    last = len(stage.axes) - 1
    extent = stage.axes[last].extent
    if axis >= last or stage.is_reduction or stage.inside is not None:
        return ()
    if not isinstance(extent, int) or not 1 < extent <= GROUPED:
        return ()
    return (UnrollAndJam(stage.name, stage.names[last], extent),)


def group_of(stages: Iterable[Statement], target: Target) -> int:
    """How many registers are one vector, where they can be grouped (LMUL of RVV).

    The fewest instructions: a function holds six vectors or some more, its
    coefficients are numbers, and what little does not fit costs less than twice as
    many rounds (softmax and GELU execute 1.6 to 1.8 times fewer than with groups of
    two).  Numbers that are twice as wide have twice as many registers.  Of a sum a
    group has several chains in it.
    """
    sizes = {width for stage in stages for width in lane_bits(stage)}
    return min(target.vector.grouped, GROUPED // (2 if len(sizes) > 1 else 1))


def is_short(stage: Statement) -> bool:
    """Whether as much as a group is done at once where there are no groups: by what
    reads at places that it computes or converts numbers, and does little else."""
    if stage.inside is not None or stage.is_reduction:
        return False
    return bool(stage.found) or (converts(stage) and not stage.has_functions)


def lane_bits(stage: Statement) -> set[int]:
    """Of the numbers in a stage's vectors: not of what is the same in all lanes."""
    axis = vector_axis(stage)
    name = "" if axis is None else stage.names[axis]
    reads = [x for x in stage.reads if not name or name in x.axes]
    kinds = {x.element for x in (*reads, *stage.writes)} | {*stage.found}
    return {bits(widened(kind)) for kind in kinds - {"index"}}


def widened(kind: str) -> str:
    """The type that numbers are computed in."""
    return "f32" if kind in HALVES else kind


def bytes_together(stage: Statement) -> tuple[UnrollAndJam, ...]:
    """Eight bytes of conditions at once, where they lie side by side."""
    *_, last = (None, *stage.writes[0].plain)
    extent = stage.axes[stage.place(last)].extent if last is not None else 1
    if last is None or not isinstance(extent, int) or extent < BYTE:
        return ()
    return (UnrollAndJam(stage.name, last, BYTE),)


def packs_bits(stage: Statement, axis: int) -> bool:
    """Whether eight conditions along an axis become a byte."""
    combines = stage.semiring is not None and stage.semiring.combine == "arith.ori"
    bytes_ = bits(stage.writes[0].element) == BYTE
    return combines and bytes_ and stage.axes[axis].extent == BYTE


def is_scalable(stage: Statement, axis: int, target: Target) -> bool:
    """Whether vectors of a stage can be as wide as the machine's, whatever it has.

    Not where lanes are taken out one by one: operands that lie along another axis, if
    no load takes numbers at a distance.  Pads read rows as they are.
    """
    name = stage.names[axis]
    whole = stage.on_lanes or stage.inside is not None
    return target.vector.scalable and whole and not are_strided(stage, name, target)


def are_strided(stage: Statement, axis: str, target: Target) -> bool:
    """Whether an operand's numbers along an axis are no single load, or no store.

    Factors of products lie along their vectors, or stand still; but for windows, which
    slide along one of them.
    """
    free = target.vector.any_length
    operands = (*stage.reads, *stage.writes)
    apart = [x for x in operands if not x.lies_along(axis)]
    within = stage.is_contraction or stage.axes[stage.place(axis)].is_reduction
    if free:
        apart = [x for x in operands if not x.follows_on(axis)]
        windows = any(is_sliding(x, axis) for x in stage.reads)
        usual = stage.place(axis) == vector_axis(stage)
        within = stage.is_contraction and usual and not windows
    if target.isa.strided_loads and not within and not stage.inside:
        fixed = () if free else stage.writes
        apart = [x for x in apart if x in fixed or not has_distance(x, axis, target)]
    return bool(apart)


def width(count: int, scalable: bool) -> Lanes:
    """So many lanes; two at least of a scalable vector.

    MLIR takes vector<[1]xf64> for a vector of one element, and fills or sums only that.
    """
    return Lanes(max(count, 2) if scalable else count, scalable)


def lanes_of(stage: Statement, target: Target) -> int:
    """Lanes of a loop: full vectors of f32, of the only width if all are the same."""
    operands = (*stage.reads, *stage.writes)
    widths = {bits(x.element) for x in operands if x.element != "index"}
    if target.vector.scalable and not stage.is_contraction:
        # Groups of registers are full of f32; a place takes 32 bits at least.
        whole = target.vector.grouped > 1
        wide = converts(stage) if whole else bool(stage.found) or gathers(stage, target)
        widths |= {bits("f32")} if wide else set()
    width = widths.pop() if len(widths) == 1 else bits("f32")
    return target.vector.bits // max(8, min(width, 64))


def gathers(stage: Statement, target: Target) -> bool:
    """Whether numbers come from, or go to, places apart, and are not turned for it."""
    place = axis_of(stage, target)
    if not target.vector.any_length or place is None or stage.inside is not None:
        return False
    axis, last = stage.names[place], len(stage.axes) - 1
    turned = not stage.is_reduction and place == last
    operands = (*stage.reads, *stage.writes)
    return not turned and not all(x.follows_on(axis) for x in operands)


def converts(stage: Statement) -> bool:
    """Whether it computes in another type of floats than it reads or writes."""
    return "arith.extf" in stage.body or "arith.truncf" in stage.body
