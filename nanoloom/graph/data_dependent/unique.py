"""Unique: sorted, each of equal neighbours but the first left out."""

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
    set_counts,
    sizes_of,
)
from nanoloom.graph.data_dependent.node_builder import INT64, Maker
from nanoloom.graph.data_dependent.reshape import shaped
from nanoloom.graph.data_dependent.selected_indices import chosen_places, is_known
from nanoloom.graph.types import shape_of


def unique(m: Maker) -> bool:
    x, given = m.input(0), m.node.attributes.get("axis")
    if is_known(x) and not counts_of(x):
        return False
    kind = x.dtype
    assert kind is not None
    if kind == ir.DataType.BOOL:
        x = set_counts(m.one("Cast", x, to=int(ir.DataType.UINT8)), counts_of(x))
    if given is None:
        size = m.times(sizes_of(x))
        rows, _ = shaped(m, x, [size])
        order, back, inner = [0], [0], list[int]()
        by_value = sorted_values
    else:
        rank = len(shape_of(x))
        axis = given.as_int() % rank
        if set(counts_of(x)) - {axis}:
            raise m.refused("it compares slices whose size depends on the data")
        order = [axis, *(d for d in range(rank) if d != axis)]
        back = [order.index(d) for d in range(rank)]
        inner = [shape_of(x)[d] for d in order[1:]]
        size = sizes_of(x)[axis]
        turned = m.one("Transpose", x, perm=order)
        extents = [shape_of(x)[axis], prod(inner)]
        rows = m.one("Reshape", turned, m.ints(*extents), allowzero=1)
        by_value = sorted_slices
    values, origins = by_value(m, rows, size)
    found = grouped(m, values, origins, size)
    if not m.attribute("sorted", 1):
        found = in_order_of_appearance(m, *found)
    slices, first, inverse, numbers, count = found
    if given is not None:
        extents = [shape_of(slices)[0], *inner]
        slices = m.one("Reshape", slices, m.ints(*extents), allowzero=1)
        slices = m.one("Transpose", slices, perm=back)
    if kind == ir.DataType.BOOL:
        slices = m.one("Cast", slices, to=int(kind))
    one: Counts = {0: count}
    all_: Counts = {0: size} if isinstance(size, Count) else {}
    along: Counts = {back.index(0) if given is None else order[0]: count}
    m.replace((slices, along), (first, one), (inverse, all_), (numbers, one))
    return True


def ordered(m: Maker, x: ir.Value, size: Size) -> Sequence[ir.Value]:
    """The first `size` elements from the least to the largest, and their places."""
    assert x.type is not None
    made = [(shape_of(x), x.type), (shape_of(x), INT64)]
    given = [x, m.number(size), m.number(size)]
    return m.own("CountedTopK", given, made, axis=0, largest=0)


def sorted_values(m: Maker, x: ir.Value, size: Size) -> tuple[ir.Value, ir.Value]:
    values, places = ordered(m, x, size)
    return values, places


def sorted_slices(m: Maker, x: ir.Value, size: Size) -> tuple[ir.Value, ir.Value]:
    """Slices [n, m] in the order of their first elements that differ."""
    (places,) = m.own("SortedSlices", [x, m.number(size)], [(shape_of(x)[:1], INT64)])
    return m.one("Gather", x, places, axis=0), places


def reversed_order(m: Maker, at: ir.Value, values: ir.Value, size: Size) -> ir.Value:
    """made[at[i]] = values[i] for the first `size` places, which are all different."""
    (extent,) = shape_of(at)
    counts = m.one("Less", m.positions(extent), m.number(size))
    at = m.one("Where", counts, at, m.ints(extent))
    room = m.one("ConstantOfShape", m.ints(extent + 1))
    room = m.one("Cast", room, to=int(ir.DataType.INT64))
    made = m.one("ScatterElements", room, at, values, axis=0)
    return m.one("Slice", made, m.ints(0), m.ints(extent), m.ints(0))


Found = tuple[ir.Value, ir.Value, ir.Value, ir.Value, Count]


def grouped(m: Maker, values: ir.Value, origins: ir.Value, size: Size) -> Found:
    """Of sorted ones: those that begin a group, where each came first, which group
    each belongs to, how many are in each, and how many groups there are."""
    extent = shape_of(values)[0]
    here = m.positions(extent)
    before = m.one("Max", m.one("Sub", here, m.ints(1)), m.ints(0))
    fresh = m.one("Not", equal(m, values, m.one("Gather", values, before, axis=0)))
    fresh = m.one("Or", fresh, m.one("Equal", here, m.ints(0)))
    fresh = m.one("And", fresh, m.one("Less", here, m.number(size)))
    starts, count = chosen_places(m, fresh)
    marks = m.one("Cast", fresh, to=int(ir.DataType.INT64))
    group = m.one("CumSum", marks, m.constant(np.array(0, np.int64)))
    inverse = reversed_order(m, origins, m.one("Sub", group, m.ints(1)), size)
    after = m.one("Min", m.one("Add", here, m.ints(1)), m.ints(m.decided.last(extent)))
    ends = m.one("Gather", starts, after, axis=0)
    is_last = m.one("Not", m.one("Less", m.one("Add", here, m.ints(1)), count.value))
    ends = m.one("Where", is_last, m.number(size), ends)
    numbers = m.one("Sub", ends, starts)
    first = m.one("Gather", origins, starts, axis=0)
    return m.one("Gather", values, starts, axis=0), first, inverse, numbers, count


def equal(m: Maker, one: ir.Value, other: ir.Value) -> ir.Value:
    """Whether elements, or all elements of slices, are equal; NaN is NaN."""
    made = m.one("Equal", one, other)
    assert one.dtype is not None
    if one.dtype.is_floating_point():
        both = m.one("And", m.one("IsNaN", one), m.one("IsNaN", other))
        made = m.one("Or", made, both)
    if len(shape_of(one)) == 1:
        return made
    whole = m.one("Cast", made, to=int(ir.DataType.INT64))
    least = m.one("ReduceMin", whole, m.ints(1), keepdims=0)
    return m.one("Cast", least, to=int(ir.DataType.BOOL))


def in_order_of_appearance(
    m: Maker,
    slices: ir.Value,
    first: ir.Value,
    inverse: ir.Value,
    numbers: ir.Value,
    count: Count,
) -> Found:
    """The same in the order in which they come first."""
    met, order = ordered(m, first, count)
    rank = reversed_order(m, order, m.positions(shape_of(order)[0]), count)
    slices, numbers = (m.one("Gather", x, order, axis=0) for x in (slices, numbers))
    return slices, met, m.one("Gather", rank, inverse, axis=0), numbers, count
