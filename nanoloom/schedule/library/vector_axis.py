"""Along which axis of a stage its vectors run.

    for i: for t of 2: y[i, t] = x[i]     ->   for t: y[iv, t] = x[iv]

The innermost one of the result, or of what is read where that is reduced.  Vectors of
any width run along another one where that is shorter than the least of them: numbers
that lie at a distance are one load, or one store, however many they are.  Others run
along the next one where the innermost one of a result is short: they are stored between
each other.
"""

from __future__ import annotations

from collections.abc import Iterable

from nanoloom.nest.contraction import bits
from nanoloom.nest.granularity import JAMMED
from nanoloom.nest.index import Access
from nanoloom.nest.statement import Statement
from nanoloom.target.facts import LANE_BITS, WIDEST_BITS, Target

MANY = WIDEST_BITS // LANE_BITS  # times the least width: no vector is wider
GROUPED = JAMMED  # registers of a group are vectors side by side
LONGER = 2  # times as long is an axis that pays for what lies apart
PRODUCTS = ("arith.mulf", "arith.muli")  # of lanes: no instruction multiplies them


def axis_of(stage: Statement, target: Target, *, alone: bool = True) -> int | None:
    """The place of the axis; None for a stage of a single number.

    alone: no other stage of its kernel goes over all that a sum does; else rows are
    computed one by one, by all stages.
    """
    usual = vector_axis(stage)
    free = target.vector.any_length and target.isa.strided_loads
    if usual is None or stage.inside is not None or not stage.on_lanes:
        return usual
    if not free:
        return next_axis(stage, usual, target) if alone else usual
    pixels = pixels_of(stage)
    if pixels is not None:
        return pixels
    if stage.axes[usual].is_sample or not isinstance(stage.axes[usual].extent, int):
        return usual
    found = [
        (min(extent, MANY * least(stage, target)), following(stage, axis.name), -place)
        for place, axis in enumerate(stage.axes)
        if isinstance(extent := axis.extent, int)
        and (alone or not stage.is_reduction or not stage.axes[usual].is_reduction)
        and pays(stage, usual, place, target)
        and can_be_lanes(stage, place, target)
    ]
    return -max(found)[2] if found else usual


def next_axis(stage: Statement, usual: int, target: Target) -> int:
    """The axis in front of a short innermost one, whose vectors together are rows of
    the result; else the innermost one."""
    written = stage.writes[0].plain
    if stage.is_reduction or len(stage.writes) > 1 or target.vector.scalable:
        return usual
    if usual != len(stage.axes) - 1 or len(written) < 2 or written[-2] is None:
        return usual
    place = stage.place(written[-2])
    short, long = stage.axes[usual].extent, stage.axes[place].extent
    if not isinstance(short, int) or not isinstance(long, int):
        return usual
    fits = all(bits("f32") <= bits(kind) <= bits("f64") for kind in elements(stage))
    reads = all(x.lies_along(written[-2]) for x in stage.reads)
    few = 1 < short <= GROUPED and not stage.axes[usual].is_sample
    return place if fits and reads and few and long >= LONGER * short else usual


def runs_across(stage: Statement, target: Target, *, alone: bool = True) -> bool:
    """Whether vectors do not run along the innermost axis, which is too short."""
    found = axis_of(stage, target, alone=alone)
    return found not in (vector_axis(stage), pixels_of(stage))


def is_alone(stages: Iterable[Statement]) -> bool:
    """Whether one stage of a kernel alone goes over the most axes."""
    ranks = [len(stage.axes) for stage in stages if stage.reads]
    return ranks.count(max(ranks, default=0)) == 1


def least(stage: Statement, target: Target) -> int:
    """Lanes of the shortest vector that a stage may have."""
    return target.vector.min_bits // max(8, *map(bits, elements(stage)))


def pays(stage: Statement, usual: int, place: int, target: Target) -> bool:
    """Whether vectors along an axis are so much longer that its loads may be slower.

    Where a load or store takes numbers at a distance, a sum across lanes takes longer,
    a product of all lanes anywhere; and nothing is slower where as many operands lie
    along the one axis as the other.
    """
    one, other = stage.axes[usual], stage.axes[place]
    alike = following(stage, other.name) >= following(stage, one.name)
    strides = target.vector.grouped > 1 and (one.is_reduction or alike)
    strides = strides and not stage.is_contraction
    multiplied = stage.semiring is not None and stage.semiring.combine in PRODUCTS
    wide = strides or (multiplied and one.is_reduction)
    short = least(stage, target) * (2 * GROUPED if wide else 1)
    extents = one.extent, other.extent
    assert isinstance(extents[0], int) and isinstance(extents[1], int)
    return extents[0] < short and extents[1] >= LONGER * extents[0]


def elements(stage: Statement) -> list[str]:
    """The types of what a stage reads and writes."""
    return [x.element for x in (*stage.reads, *stage.writes) if x.element != "index"]


def following(stage: Statement, axis: str) -> int:
    """How many operands are vectors as they lie."""
    return sum(x.follows_on(axis) for x in (*stage.reads, *stage.writes))


def can_be_lanes(stage: Statement, place: int, target: Target) -> bool:
    """Whether all operands are one load or store of a vector along an axis."""
    axis = stage.axes[place]
    if axis.is_sample or (axis.is_reduction and stage.semiring is None):
        return False
    return all(
        x.follows_on(axis.name) or has_distance(x, axis.name, target)
        for x in (*stage.reads, *stage.writes)
    )


def pixels_of(stage: Statement) -> int | None:
    """The innermost axis of a result, if windows slide along it in what is read."""
    indices = stage.writes[0].indices
    last = indices[-1].axis if indices and stage.is_reduction else None
    if last is None:
        return None
    return stage.place(last) if any(is_sliding(x, last) for x in stage.reads) else None


def is_sliding(x: Access, axis: str) -> bool:
    """Whether an operand is read at sums of an axis and another one, innermost."""
    index = x.indices[-1] if x.indices else None
    if index is None or index.other or axis not in index.axes:
        return False
    return len(index.axes) > 1 and not any(axis in each.axes for each in x.indices[:-1])


def has_distance(x: Access, axis: str, target: Target) -> bool:
    """Whether a step along an axis is always as long, of numbers as a load takes."""
    linear = all(index.factor(axis) is not None for index in x.indices)
    least = bits("u8" if target.vector.any_length else "f32")  # others are turned
    return linear and least <= bits(x.element) <= bits("f64")


def vector_axis(stage: Statement) -> int | None:
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
