"""The numbers of a shape that a model computes: which are known, which are sizes."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from nanoloom.graph.data_dependent.count import COUNT, Size
from nanoloom.graph.data_dependent.integer_bounds import MOST, known_ints
from nanoloom.graph.data_dependent.node_builder import Maker
from nanoloom.graph.types import is_static, shape_of

MOVES = ("Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")


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
    rows = [x for x in node.inputs if x is not None]
    if not rows or len(shape_of(rows[0])) > 1:
        return None
    first, extent = rows[0], max(1, *shape_of(rows[0]), 1)
    if node.op_type in MOVES:
        is_whole = first.dtype is not None and first.dtype.is_integer()
        return (first, i) if is_whole else None
    if node.op_type == "Concat":
        return part_of(rows, i)
    known = known_ints(rows[1]) if len(rows) > 1 else None
    if known is None or len(rows) > 4:
        return None
    if node.op_type == "Gather" and len(known) > i:
        return first, known[i] % extent
    if node.op_type == "Slice" and len(known) == 1:
        return first, i + known[0] % extent
    return None


def part_of(rows: Sequence[ir.Value], i: int) -> tuple[ir.Value, int]:
    """Which of the rows that are joined holds a number, and where."""
    for row in rows[:-1]:
        if i < shape_of(row)[0]:
            return row, i
        i -= shape_of(row)[0]
    return rows[-1], i
