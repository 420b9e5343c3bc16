"""Reshape, Flatten, Expand, Tile, ConstantOfShape with sizes that depend on data.

Where one leading axis counts, before and after, its elements are the first ones of all,
and nothing moves.  Otherwise they are put in order first, and from there in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from nanoloom.graph.data_dependent.count import (
    Count,
    Counts,
    Size,
    counts_of,
    most_of,
    sizes_of,
)
from nanoloom.graph.data_dependent.elementwise import common, fitted
from nanoloom.graph.data_dependent.node_builder import Maker
from nanoloom.graph.data_dependent.reshape_targets import target_of
from nanoloom.graph.types import shape_of


def reshape(m: Maker) -> bool:
    x, target = m.input(0), target_of(m, m.input(1))
    if target is None:
        if counts_of(x):
            raise m.refused("its shape is not known while compiling")
        return False
    sizes = sizes_of(x)
    if not m.attribute("allowzero", 0):
        target = [sizes[i] if t == 0 else t for i, t in enumerate(target)]
    if -1 in target:
        others = [t for t in target if not (isinstance(t, int) and t == -1)]
        rest = quotient(m, sizes, others)
        target = [rest if isinstance(t, int) and t == -1 else t for t in target]
    elif m.decided.is_open:
        target = agreed(m, sizes, target)
    m.replace(shaped(m, x, target))
    return True


def agreed(m: Maker, sizes: Sequence[Size], target: Sequence[Size]) -> list[Size]:
    """A shape of as many elements; where they differ, the program says so.

    Of known sizes, what gives another number than there are is refused.
    """
    counts = [i for i, size in enumerate(target) if isinstance(size, Count)]
    made, rest = list(target), rest_of(target)
    if len(counts) != 1 or rest < 1:
        return made
    have, wanted = m.times(sizes), m.times(target)
    total = m.same(have, wanted)
    (place,) = counts
    size = target[place]
    if total is not have and total is not wanted and isinstance(size, Count):
        number = m.one("Div", m.number(total), m.ints(rest))
        made[place] = m.count(number, size.most, size)
    return made


def flatten(m: Maker) -> None:
    x = m.input(0)
    axis, sizes = m.attribute("axis", 1), sizes_of(x)
    axis = axis % len(sizes) if axis < 0 else axis
    target = [m.times(sizes[:axis]), m.times(sizes[axis:])]
    m.replace(shaped(m, x, target))


def quotient(m: Maker, sizes: Sequence[Size], others: Sequence[Size]) -> Size:
    """What a -1 stands for: the product of sizes by that of others."""
    left = list(sizes)
    rest: list[Size] = []
    for size in others:
        same = [i for i, s in enumerate(left) if is_same(s, size)]
        if same:
            left.pop(same[0])
        else:
            rest.append(size)
    known = prod(s for s in rest if isinstance(s, int))
    unknown = [s for s in rest if isinstance(s, Count)]
    whole = prod(s for s in left if isinstance(s, int))
    if not unknown and known and whole % known == 0:
        return m.times([*(s for s in left if isinstance(s, Count)), whole // known])
    total, divisor = m.times(left), m.times(rest)
    number = m.one("Max", m.number(divisor), m.ints(1))
    found = m.one("Div", m.number(total), number)
    most = prod(map(most_of, left)) // max(known, 1)
    return m.count(found, most, *left, *rest)


def is_same(one: Size, other: Size) -> bool:
    if isinstance(one, Count) and isinstance(other, Count):
        return one.value is other.value
    return False


def shaped(m: Maker, x: ir.Value, target: Sequence[Size]) -> tuple[ir.Value, Counts]:
    """x in row-major order under another shape."""
    given = sizes_of(x)
    counts = {axis: s for axis, s in enumerate(target) if isinstance(s, Count)}
    if is_leading(given) and is_leading(target):
        extent, inner = prod(map(most_of, given)), rest_of(target)
        if counts and inner and extent % inner == 0:
            (axis,) = counts
            least = m.decided.bound(counts[axis].most, extent // inner)
            counts = {axis: counts[axis].limited(least)}
            most = [
                extent // inner if d == axis else most_of(s)
                for d, s in enumerate(target)
            ]
            return broadcast_under(m, x, most), counts
        if not counts and extent == prod(map(most_of, target)):
            return broadcast_under(m, x, [most_of(s) for s in target]), counts
    row = x if is_leading(given) else in_order(m, x, given)
    row = broadcast_under(m, row, [prod(map(most_of, given))])
    return in_place(m, row, target), counts


def is_leading(sizes: Sequence[Size]) -> bool:
    """Whether the elements that count are the first ones of all."""
    for axis, size in enumerate(sizes):
        if isinstance(size, Count):
            behind = sizes[axis + 1 :]
            return not any(isinstance(s, Count) for s in behind)
        if size != 1:
            return not any(isinstance(s, Count) for s in sizes)
    return True


def rest_of(sizes: Sequence[Size]) -> int:
    return prod(s for s in sizes if isinstance(s, int))


def broadcast_under(m: Maker, x: ir.Value, sizes: Sequence[int]) -> ir.Value:
    """A Reshape of the largest shape."""
    return m.one("Reshape", x, m.ints(*sizes), allowzero=1)


def strides(m: Maker, sizes: Sequence[Size]) -> list[Size]:
    """How many elements lie between neighbours along each axis."""
    made: list[Size] = [1]
    for size in list(sizes)[:0:-1]:
        made.append(m.times([made[-1], size]))
    return made[: len(sizes)][::-1]


def in_order(m: Maker, x: ir.Value, sizes: Sequence[Size]) -> ir.Value:
    """The elements that count in front of all others, in a row."""
    extents = shape_of(x)
    extent = prod(extents)
    at, place = m.positions(extent), None
    for stride, size, wide in zip(
        strides(m, sizes), sizes, strides(m, extents), strict=True
    ):
        here = m.one("Div", at, m.one("Max", m.number(stride), m.ints(1)))
        here = m.one("Mod", here, m.one("Max", m.number(size), m.ints(1)))
        here = m.one("Mul", here, m.number(wide))
        place = here if place is None else m.one("Add", place, here)
    assert place is not None
    return m.one(
        "Gather",
        broadcast_under(m, x, [extent]),
        m.one("Min", place, m.ints(m.decided.last(extent))),
        axis=0,
    )


def in_place(m: Maker, row: ir.Value, target: Sequence[Size]) -> ir.Value:
    """A row of elements under a shape, of which only a part may count."""
    most = [most_of(s) for s in target]
    place = None
    for axis, stride in enumerate(strides(m, target)):
        here = m.positions(most[axis], len(target), axis)
        here = m.one("Mul", here, m.number(stride))
        place = here if place is None else m.one("Add", place, here)
    (extent,) = shape_of(row)
    if place is None:
        place = m.ints(0)
    at = m.one("Min", place, m.ints(m.decided.last(extent)))
    if not target:
        at = m.one("Reshape", at, m.constant(np.zeros(0, np.int64)))
    return m.one("Gather", row, at, axis=0)


def expand(m: Maker) -> bool:
    x, target = m.input(0), target_of(m, m.input(1))
    if target is None:
        if counts_of(x):
            raise m.refused("its shape is not known while compiling")
        return False
    rank = max(len(target), len(shape_of(x)))
    own: list[Size] = [1] * (rank - len(shape_of(x)))
    own += sizes_of(x)
    wanted: list[Size] = [1] * (rank - len(target))
    wanted += target
    sizes = [common(m, pair) for pair in zip(own, wanted, strict=True)]
    x = fitted(m, x, sizes[rank - len(shape_of(x)) :])
    most = m.ints(*map(most_of, sizes))
    counts = {d: s for d, s in enumerate(sizes) if isinstance(s, Count)}
    m.replace((m.one("Expand", x, most), counts))
    return True


def tile(m: Maker) -> bool:
    x, repeats = m.input(0), target_of(m, m.input(1))
    if repeats is None:
        if counts_of(x):
            raise m.refused("its numbers are not known while compiling")
        return False
    counts: dict[int, Count] = {}
    sizes = sizes_of(x)
    for axis, (have, times) in enumerate(zip(sizes, repeats, strict=True)):
        made = m.times([have, times])
        if isinstance(have, Count) and times != 1:
            length = m.one("Max", have.value, m.ints(1))
            at = m.one("Mod", m.positions(most_of(made)), length)
            x = m.one("Gather", x, at, axis=axis)
        elif not isinstance(have, Count):
            number = most_of(times)
            ones = [number if d == axis else 1 for d in range(len(sizes))]
            if number != 1:
                x = m.one("Tile", x, m.ints(*ones))
        if isinstance(made, Count):
            counts[axis] = made
    m.replace((x, counts))
    return True


def constant(m: Maker) -> bool:
    """ConstantOfShape."""
    target = target_of(m, m.input(0))
    if target is None:
        return False
    made = m.again(m.ints(*map(most_of, target)))[0]
    m.replace((made, {d: s for d, s in enumerate(target) if isinstance(s, Count)}))
    return True
