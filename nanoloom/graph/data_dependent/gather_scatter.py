"""Operators that read or write at indices: what does not count reads the first place,
and writes to one behind the last that is cut off again."""

from __future__ import annotations

from collections.abc import Sequence

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
from nanoloom.graph.data_dependent.node_builder import INT64, Maker
from nanoloom.graph.types import shape_of


def gather(m: Maker) -> None:
    x, indices = m.input(0), m.input(1)
    rank, depth = len(shape_of(x)), len(shape_of(indices))
    axis = m.attribute("axis", 0) % rank
    counts = {axis + j: c for j, c in counts_of(indices).items()}
    for d, count in counts_of(x).items():
        if d != axis:
            counts[d if d < axis else d + depth - 1] = count
    at = clamp_indices(m, indices, counts_of(x).get(axis))
    m.replace((m.again(x, at)[0], counts))


def clamp_indices(m: Maker, indices: ir.Value, count: Count | None) -> ir.Value:
    """Indices of an axis of so many elements, from its beginning; 0 where none counts.

    Those out of range are so for the largest extent, too: the program says so.
    """
    made = indices if count is None else from_beginning(m, indices, count)
    if count is not None:
        outside = m.one("Not", m.one("Less", made, count.value))
        outside = m.one("Or", outside, m.one("Less", made, m.ints(0)))
        made = m.one("Where", outside, m.ints(count.most), made)
        made = same_type(m, made, indices)
    return m.filled(made, 0, list(counts_of(indices)))


def from_beginning(m: Maker, indices: ir.Value, size: Size) -> ir.Value:
    """Indices, of which those below 0 count from the end of an axis, as int64."""
    made = indices
    if made.dtype != ir.DataType.INT64:
        made = m.one("Cast", made, to=int(ir.DataType.INT64))
    known = known_ints(indices)
    if known is None or min(known, default=0) < 0:
        behind = m.one("Less", made, m.ints(0))
        made = m.one("Where", behind, m.one("Add", made, m.number(size)), made)
    return same_type(m, made, indices)


def same_type(m: Maker, made: ir.Value, indices: ir.Value) -> ir.Value:
    """Indices computed from others, with their shape and counts, int64."""
    if shape_of(indices) == ():
        made = m.one("Reshape", made, m.constant(np.zeros(0, np.int64)))
    made.type, made.shape = INT64, indices.shape
    return set_counts(made, counts_of(indices))


def gather_elements(m: Maker) -> None:
    """Axes that are not gathered meet; indices may have less of them."""
    x, indices = m.input(0), m.input(1)
    axis = m.attribute("axis", 0) % len(shape_of(x))
    sizes = sizes_of(indices)
    for d, (have, wanted) in enumerate(zip(sizes_of(x), sizes, strict=True)):
        if d != axis and m.decided.is_less(most_of(have), most_of(wanted)):
            sizes[d] = common(m, [wanted, have])
    indices = fitted(m, indices, sizes)
    at = clamp_indices(m, indices, counts_of(x).get(axis))
    counts = {d: s for d, s in enumerate(sizes) if isinstance(s, Count)}
    m.replace((m.again(x, at)[0], counts))


def gather_slices(m: Maker) -> None:
    """GatherND."""
    x, indices = m.input(0), m.input(1)
    batch = m.attribute("batch_dims", 0)
    last = len(shape_of(indices)) - 1
    depth = shape_of(indices)[last]
    if last in counts_of(indices) or any(d < batch for d in counts_of(x)):
        raise m.refused("how many axes it reads along, or of a batch, depends on data")
    ends = sizes_of(x)[batch : batch + depth]
    at = clamp_places(m, indices, ends, [most_of(n) for n in ends])
    at = m.filled(at, 0, list(counts_of(indices)))
    counts = dict(counts_of(indices))
    behind = last - batch - depth
    counts |= {d + behind: c for d, c in counts_of(x).items() if d >= batch + depth}
    m.replace((m.again(x, at)[0], counts))


def clamp_places(
    m: Maker, indices: ir.Value, sizes: Sequence[Size], outside: Sequence[int]
) -> ir.Value:
    """Places along several axes of these sizes, a row each, from their beginnings.

    outside: what those become that are not within sizes which the program computes.
    """
    known = known_ints(indices)
    counted = any(isinstance(size, Count) for size in sizes)
    if not counted and known is not None and min(known, default=0) >= 0:
        return indices
    ends = m.one("Concat", *map(m.number, sizes), axis=0)
    made = m.one("Add", indices, ends)
    made = m.one("Where", m.one("Less", indices, m.ints(0)), made, indices)
    if counted:
        inside = m.one(
            "And", m.one("Less", made, ends), m.one("Less", m.ints(-1), made)
        )
        made = m.one("Where", inside, made, m.ints(*outside))
    return same_type(m, made, indices)


def scatter_elements(m: Maker) -> None:
    x, indices, updates = m.input(0), m.input(1), m.input(2)
    axis = m.attribute("axis", 0) % len(shape_of(x))
    pairs = zip(sizes_of(indices), sizes_of(updates), strict=True)
    sizes = [common(m, pair) for pair in pairs]
    counted = {d: s for d, s in enumerate(sizes) if isinstance(s, Count)}
    updates = fitted(m, updates, sizes)
    at = fitted(m, indices, sizes)
    at = from_beginning(m, at, sizes_of(x)[axis])
    for d, size in counted.items():
        at = m.bounded(at, shape_of(at), d, size, np.array(shape_of(x)[axis]))
    m.replace((map_indices(m, x, axis, at, updates), counts_of(x)))


def scatter_slices(m: Maker) -> None:
    """ScatterND."""
    x, indices, updates = m.input(0), m.input(1), m.input(2)
    last = len(shape_of(indices)) - 1
    depth = shape_of(indices)[last]
    if last in counts_of(indices):
        raise m.refused("how many axes it writes along depends on the data")
    pairs = zip(sizes_of(indices)[:last], sizes_of(updates)[:last], strict=True)
    outer = [common(m, pair) for pair in pairs]
    updates = fitted(m, updates, [*outer, *sizes_of(x)[depth:]])
    at = fitted(m, indices, [*outer, depth])
    first, *others = shape_of(x)[:depth]  # one place is behind the last one
    at = clamp_places(m, at, sizes_of(x)[:depth], [first + 1, *others])
    behind = np.array([first] + [0] * (depth - 1))
    for d, size in enumerate(outer):
        if isinstance(size, Count):
            shape = [*map(most_of, outer), depth]
            at = m.bounded(at, shape, d, size, behind)
    m.replace((map_indices(m, x, 0, at, updates), counts_of(x)))


def map_indices(
    m: Maker, x: ir.Value, axis: int, at: ir.Value, updates: ir.Value
) -> ir.Value:
    """x with updates, by way of a place behind the last one of an axis."""
    extent = shape_of(x)[axis]
    one = m.one("Slice", x, m.ints(0), m.ints(1), m.ints(axis))
    longer = m.one("Concat", x, one, axis=axis)
    made = m.again(longer, at, updates)[0]
    return m.one("Slice", made, m.ints(0), m.ints(extent), m.ints(axis))
