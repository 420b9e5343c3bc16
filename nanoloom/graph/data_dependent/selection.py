"""Operators that choose elements: how many there are depends on the data."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx_ir as ir

from nanoloom.graph.data_dependent.count import (
    Count,
    counts_of,
    most_of,
    set_counts,
    sizes_of,
)
from nanoloom.graph.data_dependent.integer_bounds import known_ints
from nanoloom.graph.data_dependent.node_builder import INT64, Maker
from nanoloom.graph.data_dependent.reshape import shaped
from nanoloom.graph.data_dependent.rows_read import rows_wanted
from nanoloom.graph.data_dependent.selected_indices import chosen_places, is_known
from nanoloom.graph.quantization import known_array
from nanoloom.graph.types import shape_of

BOOL = int(ir.DataType.BOOL)


def nonzero(m: Maker) -> bool:
    x = m.input(0)
    if is_known(x) and not counts_of(x):
        return False
    extents = shape_of(x) or (1,)
    mask = x if x.dtype == ir.DataType.BOOL else m.one("Cast", x, to=BOOL)
    mask.meta.update(x.meta)
    mask = m.filled(mask, 0, list(counts_of(x)))
    mask = m.one("Reshape", mask, m.ints(-1))
    places, count = chosen_places(m, mask)
    rows: list[ir.Value] = []
    for d in range(len(extents)):
        row = places
        if (stride := prod(extents[d + 1 :])) > 1:
            row = m.one("Div", row, m.ints(stride))
        if d > 0:
            row = m.one("Mod", row, m.ints(max(extents[d], 1)))
        rows.append(m.one("Unsqueeze", row, m.ints(0)))
    made = m.one("Concat", *rows, axis=0)
    m.replace((made, {1: count}))
    return True


def compress(m: Maker) -> bool:
    x, condition = m.input(0), m.input(1)
    given = m.node.attributes.get("axis")
    if given is None:
        size = m.times(sizes_of(x))
        x, counts = shaped(m, x, [size])
        set_counts(x, counts)
    axis = 0 if given is None else given.as_int() % len(shape_of(x))
    known = None if counts_of(condition) else known_array(condition)
    if known is not None and axis not in counts_of(x):  # as many as there are
        places = m.constant(np.flatnonzero(known).astype(np.int64))
        m.replace((m.one("Gather", x, places, axis=axis), counts_of(x)))
        return True
    mask = m.filled(condition, 0, [0])
    if m.decided.is_less(shape_of(x)[axis], shape_of(mask)[0]):
        mask = m.cut(mask, 0, shape_of(x)[axis])
    places, count = chosen_places(m, mask)
    counts = {**counts_of(x), axis: count}
    m.replace((m.one("Gather", x, places, axis=axis), counts))
    return True


def top_k(m: Maker) -> bool:
    x, k = m.input(0), m.optional(1)
    axis = m.attribute("axis", -1) % len(shape_of(x))
    if k is None and axis in counts_of(x):
        raise m.refused("its k is an attribute")
    if k is None or (known_ints(k) is not None and axis not in counts_of(x)):
        made = m.again(*m.node.inputs)
        m.replace(*[(value, counts_of(x)) for value in made])
        return True
    size = sizes_of(x)[axis]
    known = known_ints(k)
    if known is None:
        most = m.decided.bound(int(m.limits(k)[1].reshape(-1)[0]), most_of(size))
        number = m.one("Max", m.flat(k), m.ints(0))
        wanted = m.count(number, max(most, 0), *counts_of(k).values(), size)
    else:
        wanted = known[0]
        if wanted > most_of(size):
            raise m.refused(f"k is {wanted}, the axis has {most_of(size)} elements")
    extents = [most_of(wanted) if d == axis else s for d, s in enumerate(shape_of(x))]
    assert x.type is not None
    made = m.own(
        "CountedTopK",
        [x, m.number(wanted), m.number(size)],
        [(extents, x.type), (extents, INT64)],
        axis=axis,
        largest=m.attribute("largest", 1),
    )
    counts = {d: c for d, c in counts_of(x).items() if d != axis}
    if isinstance(wanted, Count):
        counts[axis] = wanted
    m.replace(*[(value, counts) for value in made])
    return True


def suppress(m: Maker) -> bool:
    """NonMaxSuppression."""
    boxes, scores, limit = m.input(0), m.input(1), m.optional(2)
    if counts_of(boxes).keys() - {1} or counts_of(scores).keys() - {2}:
        raise m.refused("it has batches or classes whose number depends on the data")
    batches, classes, _ = shape_of(scores)
    size = m.same(sizes_of(boxes)[1], sizes_of(scores)[2])
    extent = m.decided.bound(shape_of(boxes)[1], shape_of(scores)[2])
    boxes, scores = m.cut(boxes, 1, extent), m.cut(scores, 2, extent)
    most = 0 if limit is None else int(m.limits(limit)[1].reshape(-1)[0])
    most = max(m.decided.bound(most, extent), 0) * batches * classes
    wanted = rows_wanted(m.node.outputs[0]) if batches * classes == 1 else None
    if limit is not None and wanted is not None:  # rows are the best ones, in order
        limit = m.one("Min", m.flat(limit), m.ints(wanted))
        most = m.decided.bound(most, wanted)
    others = [m.optional(i) for i in (3, 4)]
    made, number = m.own(
        "Suppressed",
        [boxes, scores, m.number(size), limit, *others],
        [([most, 3], INT64), ([1], INT64)],
        center_point_box=m.attribute("center_point_box", 0),
    )
    m.replace((made, {0: m.count(number, most, size)}))
    return True
