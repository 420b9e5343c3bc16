"""The vector axis and width of stages that no nanokernel takes."""

from __future__ import annotations

from collections.abc import Iterable

from nanoloom.nest.contraction import bits
from nanoloom.nest.extent import Lanes
from nanoloom.nest.index import Access
from nanoloom.nest.stage import Stage
from nanoloom.schedule.language import Reorder, UnrollAndJam, Vectorize
from nanoloom.target.facts import Target

Words = Reorder | UnrollAndJam | Vectorize
CHAINS = 4  # independent sums: latency of an addition times its throughput
F32_BITS = 32
HALVES = ("f16", "bf16")  # computed in f32
BYTE = 8
LOADED = (32, 64)  # bits of what is loaded from places apart
GROUPED, WIDENED = 4, 2  # registers of a group, and where numbers have two widths


def vectors(stages: Iterable[Stage], target: Target) -> tuple[Words, ...]:
    """Full vectors along the axis of each stage that is contiguous, sums inside."""
    found: list[Words] = []
    stages = tuple(stages)
    group = group_of(stages, target)
    for stage in stages:
        axis = vector_axis(stage)
        if axis is not None:
            inside = sorted(stage.axes, key=lambda each: each.is_reduction)
            if inside != list(stage.axes):
                found.append(Reorder(stage.name, tuple(x.name for x in inside)))
            chains = CHAINS if stage.axes[axis].is_reduction else 1
            if is_scalable(stage, axis, target):
                lanes = width(group * lanes_of(stage, target), scalable=True)
                chains = max(1, chains // group)
            else:
                lanes = Lanes(lanes_of(stage, target))
            if packs_bits(stage, axis):
                lanes, chains = Lanes(BYTE), 1
            found.append(Vectorize(stage.name, stage.names[axis], lanes, chains))
            if lanes.scalable and group == 1 and is_short(stage):
                found.append(UnrollAndJam(stage.name, stage.names[axis], GROUPED))
    return tuple(found)


def group_of(stages: Iterable[Stage], target: Target) -> int:
    """How many registers are one vector, where they can be grouped (LMUL of RVV).

    The fewest instructions: a function holds six vectors or some more, its
    coefficients are numbers, and what little does not fit costs less than twice as
    many rounds (softmax and GELU execute 1.6 to 1.8 times fewer than with groups of
    two).  Numbers that are twice as wide have twice as many registers.  Of a sum a
    group has several chains in it.
    """
    sizes = {width for stage in stages for width in lane_bits(stage)}
    return min(target.vector.grouped, WIDENED if len(sizes) > 1 else GROUPED)


def is_short(stage: Stage) -> bool:
    """Whether as much as a group is done at once where there are no groups: by what
    reads at places that it computes or converts numbers, and does little else."""
    if stage.inside is not None or stage.is_reduction:
        return False
    functions = any(name.startswith("math.") for name in stage.body)
    return bool(stage.found) or (converts(stage) and not functions)


def lane_bits(stage: Stage) -> set[int]:
    """Of the numbers in a stage's vectors: not of what is the same in all lanes."""
    axis = vector_axis(stage)
    name = "" if axis is None else stage.names[axis]
    reads = [x for x in stage.reads if not name or name in x.axes]
    kinds = {x.element for x in (*reads, *stage.writes)} | {*stage.found}
    return {bits(widened(kind)) for kind in kinds - {"index"}}


def widened(kind: str) -> str:
    """The type that numbers are computed in."""
    return "f32" if kind in HALVES else kind


def packs_bits(stage: Stage, axis: int) -> bool:
    """Whether eight conditions along an axis become a byte."""
    combines = stage.semiring is not None and stage.semiring.combine == "arith.ori"
    bytes_ = bits(stage.writes[0].element) == BYTE
    return combines and bytes_ and stage.axes[axis].extent == BYTE


def is_scalable(stage: Stage, axis: int, target: Target) -> bool:
    """Whether vectors of a stage can be as wide as the machine's, whatever it has.

    Not where lanes are taken out one by one: operands that lie along another axis, if
    no load takes numbers at a distance.  Pads read rows as they are.
    """
    name = stage.names[axis]
    operands = (*stage.reads, *stage.writes)
    apart = [x for x in operands if not x.lies_along(name)]
    within = stage.is_contraction or stage.axes[axis].is_reduction
    if target.isa.strided_loads and not within and not stage.inside:
        apart = [x for x in apart if x in stage.writes or not has_distance(x, name)]
    whole = stage.on_lanes or stage.inside is not None
    return target.vector.scalable and not apart and whole


def has_distance(x: Access, axis: str) -> bool:
    """Whether a step along an axis is always as long, of numbers as a load takes."""
    linear = all(index.factor(axis) is not None for index in x.indices)
    return linear and bits(x.element) in LOADED


def width(count: int, scalable: bool) -> Lanes:
    """So many lanes; two at least of a scalable vector.

    MLIR takes vector<[1]xf64> for a vector of one element, and fills or sums only that.
    """
    return Lanes(max(count, 2) if scalable else count, scalable)


def lanes_of(stage: Stage, target: Target) -> int:
    """Lanes of a loop: full vectors of f32, of the only width if all are the same."""
    operands = (*stage.reads, *stage.writes)
    widths = {bits(x.element) for x in operands if x.element != "index"}
    if target.vector.scalable and not stage.is_contraction:
        # Groups of registers are full of f32; a place takes 32 bits at least.
        whole = target.vector.grouped > 1
        wide = converts(stage) if whole else bool(stage.found)
        widths |= {F32_BITS} if wide else set()
    width = widths.pop() if len(widths) == 1 else F32_BITS
    return target.vector.bits // max(8, min(width, 64))


def converts(stage: Stage) -> bool:
    """Whether it computes in another type of floats than it reads or writes."""
    return "arith.extf" in stage.body or "arith.truncf" in stage.body


def vector_axis(stage: Stage) -> int | None:
    """Innermost of the result, or of what is read where that is reduced."""
    indices = stage.writes[0].indices
    if stage.is_reduction and stage.reads:
        last = innermost(stage.reads)
        if last is not None and stage.axes[stage.place(last)].is_reduction:
            written = frozenset(a for x in stage.writes for a in x.axes)
            if last not in written:
                return stage.place(last)
    if indices and indices[-1].axis is not None:
        return stage.place(indices[-1].axis)
    if stage.is_reduction and not indices:
        last = innermost(stage.reads)
        return None if last is None else stage.place(last)
    return None


def innermost(reads: tuple[Access, ...]) -> str | None:
    """The axis along which the operand of most dimensions is contiguous."""
    for x in sorted(reads, key=lambda x: -len(x.indices)):
        if x.indices and x.indices[-1].axis is not None:
            return x.indices[-1].axis
    return None
