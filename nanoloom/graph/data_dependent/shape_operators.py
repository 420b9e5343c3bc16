"""Operators that make, join or cut axes; sizes are computed where no one knows them."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from nanoloom.graph.data_dependent.count import (
    Count,
    Size,
    counts_of,
    most_of,
    set_counts,
    sizes_of,
)
from nanoloom.graph.data_dependent.elementwise import common, fitted
from nanoloom.graph.data_dependent.integer_bounds import known_ints
from nanoloom.graph.data_dependent.node_builder import Maker
from nanoloom.graph.types import shape_of

LAST = 1 << 31  # an end beyond all places


def shape(m: Maker) -> None:
    sizes = sizes_of(m.input(0))
    first, last = m.attribute("start", 0), m.attribute("end", len(sizes))
    parts = [m.number(size) for size in sizes[first:last]]
    made = m.one("Concat", *parts, axis=0) if parts else m.ints()
    m.replace((made, {}))


def size(m: Maker) -> None:
    number = m.number(m.times(sizes_of(m.input(0))))
    m.replace((m.one("Reshape", number, m.constant(np.zeros(0, np.int64))), {}))


def transpose(m: Maker) -> None:
    x, rank = m.input(0), len(shape_of(m.input(0)))
    given = m.node.attributes.get("perm")
    order = list(given.as_ints()) if given is not None else list(range(rank))[::-1]
    counts = {i: counts_of(x)[d] for i, d in enumerate(order) if d in counts_of(x)}
    m.replace((m.again(x)[0], counts))


def axes_of(m: Maker) -> list[int] | None:
    """Of Squeeze and Unsqueeze, as they are written; None if they are not known."""
    given = m.node.attributes.get("axes")
    if given is not None:
        return list(given.as_ints())
    return known_ints(m.optional(1))


def unsqueeze(m: Maker) -> None:
    x, axes = m.input(0), axes_of(m)
    if axes is None:
        raise m.refused("its axes are not known while compiling")
    rank = len(shape_of(x)) + len(axes)
    new = {axis % rank for axis in axes}
    old = [d for d in range(rank) if d not in new]
    counts = {old[d]: c for d, c in counts_of(x).items()}
    m.replace((m.again(*m.node.inputs)[0], counts))


def squeeze(m: Maker) -> None:
    x, axes, rank = m.input(0), axes_of(m), len(shape_of(m.input(0)))
    if axes is None:
        raise m.refused("its axes depend on sizes that depend on the data")
    gone = {axis % rank for axis in axes}
    for axis in gone & {*counts_of(x)}:
        one = m.same(counts_of(x)[axis], 1)
        x = m.cut(x, axis, most_of(one))
    left = [d for d in range(rank) if d not in gone]
    counts = {left.index(d): c for d, c in counts_of(x).items() if d in left}
    m.replace((m.again(x, *m.node.inputs[1:])[0], counts))


def concat(m: Maker) -> None:
    """Parts side by side: an element's place skips what does not count before it."""
    given = [x for x in m.node.inputs if x is not None]
    rank = len(shape_of(given[0]))
    axis = m.attribute("axis", 0) % rank
    sizes: list[Size] = [
        0 if d == axis else common(m, [sizes_of(x)[d] for x in given])
        for d in range(rank)
    ]
    parts: list[ir.Value] = []
    for x in given:
        own = [*sizes[:axis], sizes_of(x)[axis], *sizes[axis + 1 :]]
        parts.append(fitted(m, x, own))
    counts = {d: s for d, s in enumerate(sizes) if isinstance(s, Count)}
    whole = m.again(*parts)[0]
    lengths = [sizes_of(x)[axis] for x in given]
    if any(isinstance(s, Count) for s in lengths[:-1]):
        whole = m.one("Gather", whole, strided(m, lengths), axis=axis)
    total = m.total(lengths)
    if isinstance(total, Count):
        counts[axis] = total
    m.replace((whole, counts))


def strided(m: Maker, lengths: list[Size]) -> ir.Value:
    """Where the elements of all parts are, one behind the other, in what is there."""
    most = [most_of(s) for s in lengths]
    extent = sum(most)
    numbers = m.one("Concat", *[m.number(s) for s in lengths], axis=0)
    ends = m.one("CumSum", numbers, m.constant(np.array(0, np.int64)))
    unused = m.one("Sub", m.ints(*most), numbers)
    places = m.positions(extent, 2, 0)
    before = m.one("Less", places, ends)
    skipped = m.one("Where", before, m.ints(0), unused)
    skip = m.one("ReduceSum", skipped, m.ints(1), keepdims=0)
    at = m.one("Add", m.positions(extent), skip)
    return m.one("Min", at, m.ints(extent - 1))


def split(m: Maker) -> None:
    x = m.input(0)
    axis = m.attribute("axis", 0) % len(shape_of(x))
    if axis in counts_of(x):
        raise m.refused("it splits an axis whose size depends on the data")
    made = m.again(*m.node.inputs)
    m.replace(*[(value, counts_of(x)) for value in made])


def pad(m: Maker) -> None:
    x, rank = m.input(0), len(shape_of(m.input(0)))
    given = m.node.attributes.get("pads")
    pads = list(given.as_ints()) if given is not None else known_ints(m.optional(1))
    chosen = m.optional(3)
    axes = range(rank) if chosen is None else known_ints(chosen)
    if pads is None or axes is None:
        raise m.refused("its pads are not known while compiling")
    half = len(pads) // 2
    wide = {a % rank for i, a in enumerate(axes) if pads[i] or pads[half + i]}
    if wide & {*counts_of(x)}:
        raise m.refused("it pads an axis whose size depends on the data")
    m.replace((m.again(*m.node.inputs)[0], counts_of(x)))


def one_hot(m: Maker) -> None:
    indices = m.input(0)
    rank = len(shape_of(indices)) + 1
    axis = m.attribute("axis", -1) % rank
    counts = {d + (d >= axis): c for d, c in counts_of(indices).items()}
    m.replace((m.again(*m.node.inputs)[0], counts))


def cut(m: Maker) -> bool:
    """Slice, one axis after the other; False where nothing depends on the data."""
    x, rank = m.input(0), len(shape_of(m.input(0)))
    starts, ends, axes, steps = (m.optional(i) for i in range(1, 5))
    if starts is None or ends is None:
        if counts_of(x):
            raise m.refused("its limits are attributes")
        return False
    known = known_ints(axes) if axes is not None else list(range(shape_of(starts)[0]))
    strides = known_ints(steps) if steps is not None else [1] * len(known or [])
    if known is None or strides is None:
        return False
    for i, (axis, step) in enumerate(zip(known, strides, strict=True)):
        x = cut_axis(m, x, axis % rank, part(m, starts, i), part(m, ends, i), step)
    m.replace((x, counts_of(x)))
    return True


def part(m: Maker, numbers: ir.Value, i: int) -> int | ir.Value:
    """One of some integers: known, or as int64 [1]."""
    known = known_ints(numbers)
    if known is not None:
        return known[i]
    if shape_of(numbers)[0] > 1:
        numbers = m.one("Gather", numbers, m.ints(i), axis=0)
    return m.flat(numbers)


def cut_axis(
    m: Maker,
    x: ir.Value,
    axis: int,
    start: int | ir.Value,
    end: int | ir.Value,
    step: int,
) -> ir.Value:
    """The elements of an axis from start to end."""
    extent, length = shape_of(x)[axis], sizes_of(x)[axis]
    counts = dict(counts_of(x))
    ints = isinstance(start, int) and isinstance(end, int)
    if ints and not isinstance(length, Count):
        given = (m.ints(int(n)) for n in (start, end, axis, step))  # type: ignore[arg-type]
        made = m.one("Slice", x, *given)
        return set_counts(made, counts)
    if start == 0 and isinstance(end, int) and end >= 0 and step == 1:
        if end >= extent:
            return x
        assert isinstance(length, Count)
        least = m.one("Min", length.value, m.ints(end))
        made = m.cut(x, axis, end)
        counts[axis] = m.count(least, end, length)
        return set_counts(made, counts)
    first, number = places(m, m.number(length), start, end, step)
    most = -(-extent // abs(step))
    if isinstance(end, int) and end >= 0 and step > 0:
        begin = start if isinstance(start, int) and start >= 0 else 0
        room = m.decided.most(-(-(end - begin) // step), 0)
        most = m.decided.bound(most, room)
    at = m.one("Mul", m.positions(most), m.ints(step))
    at = m.one("Add", at, first)
    at = m.one("Max", m.one("Min", at, m.ints(m.decided.last(extent))), m.ints(0))
    made = m.one("Gather", x, at, axis=axis)
    counts[axis] = m.count(number, most, length)
    return set_counts(made, counts)


def places(
    m: Maker,
    length: ir.Value,
    start: int | ir.Value,
    end: int | ir.Value,
    step: int,
) -> tuple[ir.Value, ir.Value]:
    """Where a slice begins, and how many elements it has."""
    low, high = m.ints(0), length
    if step < 0:
        low, high = m.ints(-1), m.one("Sub", length, m.ints(1))
    zero, limits = m.ints(0), []
    for given, lowest in ((start, m.ints(0)), (end, low)):
        if isinstance(given, int):
            given = max(min(given, LAST), -LAST)
        number = m.number(given)
        behind = m.one("Less", number, zero)
        number = m.one("Where", behind, m.one("Add", number, length), number)
        limits.append(m.one("Min", m.one("Max", number, lowest), high))
    far = m.one("Sub", limits[1], limits[0])
    if step < 0:
        far = m.one("Neg", far)
    if abs(step) > 1:
        more = m.one("Add", far, m.ints(abs(step) - 1))
        far = m.one("Div", m.one("Max", more, zero), m.ints(abs(step)))
    return limits[0], m.one("Max", far, zero)
