"""Operators that combine elements at the same place, broadcast as in numpy."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from nanoloom.graph.data_dependent.count import (
    Count,
    Size,
    counts_of,
    most_of,
    sizes_of,
)
from nanoloom.graph.data_dependent.node_builder import Maker
from nanoloom.graph.types import shape_of

DIVISORS = ("Div", "Mod")  # of integers by 0: what does not count is no 0


def spread(m: Maker) -> None:
    """The same on the largest shapes; sizes that meet are the same size."""
    given = [x for x in m.node.inputs if x is not None]
    rank = max(len(shape_of(x)) for x in given)
    sizes: list[Size] = []
    for axis in range(-rank, 0):
        met = [sizes_of(x)[axis] for x in given if len(shape_of(x)) >= -axis]
        sizes.append(common(m, met))
    inputs = [
        None if x is None else fitted(m, x, sizes[rank - len(shape_of(x)) :])
        for x in m.node.inputs
    ]
    if m.node.op_type in DIVISORS and counts_of(inputs[1]):
        divisor = inputs[1]
        assert divisor is not None
        if divisor.dtype is not None and divisor.dtype.is_integer():
            inputs[1] = m.filled(divisor, 1, list(counts_of(divisor)))
    counts = {axis: s for axis, s in enumerate(sizes) if isinstance(s, Count)}
    m.replace((m.again(*inputs)[0], counts))


def common(m: Maker, met: Sequence[Size]) -> Size:
    """The size of an axis in which these meet; a 1 is broadcast."""
    found: Size = 1
    for size in met:
        if found == 1 or size == 1:
            found = size if found == 1 else found
        elif isinstance(found, int) and isinstance(size, int):
            found = max(found, size) if found and size else 0
        else:
            found = m.same(found, size)
    return found


def fitted(m: Maker, x: ir.Value, sizes: Sequence[Size]) -> ir.Value:
    """x with the largest extents of these sizes, where it is not broadcast."""
    for axis, size in enumerate(sizes):
        extent = shape_of(x)[axis]
        if extent != most_of(size) and (extent != 1 or axis in counts_of(x)):
            x = m.cut(x, axis, most_of(size))
    return x
