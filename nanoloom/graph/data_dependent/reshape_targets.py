"""The numbers of a shape that a model computes: which are known, which are sizes."""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.graph.data_dependent.count import COUNT, Size
from nanoloom.graph.data_dependent.integer_bounds import MOST
from nanoloom.graph.data_dependent.node_builder import Maker
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.movement_origin import read_by
from nanoloom.graph.types import is_static, shape_of


def target_of(m: Maker, numbers: ir.Value) -> list[Size] | None:
    """Each number of a computed shape; None where nobody knows how large one may be."""
    if not is_static(numbers) or len(shape_of(numbers)) != 1:
        return None
    low, high = m.limits(numbers)
    made: list[Size] = []
    for i in range(shape_of(numbers)[0]):
        if low[i] == high[i]:
            made.append(int(low[i]))
            continue
        if low[i] < 0 or high[i] >= MOST:
            return None
        made.append(element(m, numbers, i, int(high[i])))
    return made


def element(m: Maker, numbers: ir.Value, i: int, most: int) -> Size:
    """One number as a size: the one it was moved from, where that is one."""
    value, place = origin(numbers, i)
    if COUNT in value.meta:
        return value.meta[COUNT]
    if shape_of(value) not in ((), (1,)):
        value = m.one("Gather", value, m.ints(place), axis=0)
    return m.count(m.flat(value), most)


def origin(value: ir.Value, i: int) -> tuple[ir.Value, int]:
    """The value, of one dimension at most, and the place in it, of a moved number."""
    while (before := moved(value, i)) is not None:
        value, i = before
    return value, i


def moved(value: ir.Value, i: int) -> tuple[ir.Value, int] | None:
    """Where a number was before its node, if that only moves numbers of a row."""
    node = value.producer()
    if node is None or any(x is None or not is_static(x) for x in node.inputs):
        return None
    step = read_by(value, (i,)[: len(shape_of(value))])
    if is_tensor_op(node, {"Cast"}) and node.inputs[0] is not None:
        step = node.inputs[0], (i,)
    if not isinstance(step, tuple) or len(shape_of(step[0])) > 1:
        return None
    source, places = step
    if source.dtype is None or not source.dtype.is_integer():
        return None
    return source, next((p for p in places if isinstance(p, int)), 0)
