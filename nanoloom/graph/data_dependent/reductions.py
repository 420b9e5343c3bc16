"""Reductions and what runs along an axis: what does not count changes nothing there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from nanoloom.graph.data_dependent.count import Count, counts_of, set_counts, sizes_of
from nanoloom.graph.data_dependent.integer_bounds import known_ints
from nanoloom.graph.data_dependent.node_builder import Maker
from nanoloom.graph.types import shape_of

OWN_AXES = 13  # from here on Softmax and its kin see one axis, not all behind it


def lowest_value(dtype: np.dtype) -> float:
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).min)
    return 0 if dtype.kind == "b" else -np.inf


def highest_value(dtype: np.dtype) -> float:
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).max)
    return 1 if dtype.kind == "b" else np.inf


Neutral = Callable[[np.dtype], float]
NEUTRAL: dict[str, Neutral] = {
    "ArgMax": lowest_value,
    "ArgMin": highest_value,
    "ReduceL1": lambda _: 0,
    "ReduceL2": lambda _: 0,
    "ReduceLogSum": lambda _: 0,
    "ReduceLogSumExp": lowest_value,
    "ReduceMax": lowest_value,
    "ReduceMean": lambda _: 0,
    "ReduceMin": highest_value,
    "ReduceProd": lambda _: 1,
    "ReduceSum": lambda _: 0,
    "ReduceSumSquare": lambda _: 0,
}
ARGUMENTS = ("ArgMax", "ArgMin")


def reduce(m: Maker) -> None:
    x, rank = m.input(0), len(shape_of(m.input(0)))
    axes = reduced(m, rank)
    if axes is None:
        raise m.refused("its axes are not known while compiling")
    keeps, counts = m.attribute("keepdims", 1), counts_of(x)
    left = [d for d in range(rank) if keeps or d not in axes]
    kept = {left.index(d): c for d, c in counts.items() if d not in axes}
    op = m.node.op_type
    if (
        op in ARGUMENTS
        and m.attribute("select_last_index", 0)
        and set(axes) & {*counts}
    ):
        raise m.refused("it looks for the last place along a size that depends on data")
    assert x.dtype is not None
    x = m.filled(x, NEUTRAL[op](np.dtype(x.dtype.numpy())), axes)
    rest = m.node.inputs[1:]
    if op != "ReduceMean" or not set(axes) & {*counts}:
        m.replace((m.again(x, *rest)[0], kept))
        return
    assert x.dtype is not None
    number = m.number(m.times([sizes_of(m.input(0))[d] for d in axes]))
    given = m.ints(*axes)
    total = m.one("ReduceSum", x, given, keepdims=keeps)
    divisor = m.one("Cast", number, to=int(x.dtype))
    shape = [1] * len(left)
    divisor = m.one("Reshape", divisor, m.constant(np.array(shape, np.int64)))
    m.replace((m.one("Div", total, divisor), kept))


def reduced(m: Maker, rank: int) -> list[int] | None:
    """The axes of a reduction; None if they are not known."""
    if m.node.op_type in ARGUMENTS:
        return [m.attribute("axis", 0) % rank]
    attribute, given = m.node.attributes.get("axes"), m.optional(1)
    found = list(attribute.as_ints()) if attribute is not None else []
    if given is not None:
        known = known_ints(given)
        if known is None:
            return None
        found = known
    if found:
        return sorted({axis % rank for axis in found})
    return [] if m.attribute("noop_with_empty_axes", 0) else list(range(rank))


def softmax(m: Maker) -> None:
    x, rank = m.input(0), len(shape_of(m.input(0)))
    own = (m.node.version or m.version) >= OWN_AXES
    axis = m.attribute("axis", -1 if own else 1) % rank
    filled = m.filled(x, -np.inf, [axis] if own else list(range(axis, rank)))
    m.replace((m.again(filled)[0], counts_of(x)))


def cumulate(m: Maker) -> None:
    x = m.input(0)
    neutral = 1 if m.node.op_type == "CumProd" else 0
    filled = m.filled(x, neutral, list(counts_of(x)))
    m.replace((m.again(filled, *m.node.inputs[1:])[0], counts_of(x)))


def multiply(m: Maker) -> None:
    """MatMul: zeros where nothing counts along the sum."""
    x, y = m.input(0), m.input(1)
    x, y = along_sum(m, x, len(shape_of(x)) - 1, y, max(len(shape_of(y)) - 2, 0))
    outer = max(len(shape_of(x)), len(shape_of(y))) - 2
    counts: dict[int, Count] = {}
    for value in (x, y):
        rank = len(shape_of(value))
        for axis, count in counts_of(value).items():
            if axis < rank - 2:
                reduces_over(m, counts, axis + outer - (rank - 2), count)
    columns = len(shape_of(y)) > 1
    if len(shape_of(x)) > 1 and (rows := counts_of(x).get(len(shape_of(x)) - 2)):
        counts[outer] = rows
    if columns and (width := counts_of(y).get(len(shape_of(y)) - 1)):
        counts[outer + (len(shape_of(x)) > 1)] = width
    m.replace((m.again(x, y)[0], counts))


def reduces_over(m: Maker, counts: dict[int, Count], axis: int, count: Count) -> None:
    if axis in counts and counts[axis].value is not count.value:
        raise m.refused("batches of two sizes that depend on the data meet")
    counts[axis] = count


def along_sum(
    m: Maker, x: ir.Value, row: int, y: ir.Value, column: int
) -> tuple[ir.Value, ir.Value]:
    """Both operands of a product with one extent along the sum, 0 past what counts."""
    if row not in counts_of(x) and column not in counts_of(y):
        return x, y
    m.same(sizes_of(x)[row], sizes_of(y)[column])
    extent = min(shape_of(x)[row], shape_of(y)[column])
    count = counts_of(x).get(row) or counts_of(y)[column]
    made: list[ir.Value] = []
    for value, axis in ((x, row), (y, column)):
        short = m.cut(value, axis, extent)
        filled = m.bounded(short, shape_of(short), axis, count, np.array(0))
        others = {d: c for d, c in counts_of(value).items() if d != axis}
        made.append(set_counts(filled, others))
    return made[0], made[1]


def gemm(m: Maker) -> None:
    x, y, bias = m.input(0), m.input(1), m.optional(2)
    left, right = m.attribute("transA", 0), m.attribute("transB", 0)
    x, y = along_sum(m, x, 0 if left else 1, y, 1 if right else 0)
    pairs = (0, counts_of(x).get(1 if left else 0)), (1, counts_of(y).get(1 - right))
    counts = {axis: count for axis, count in pairs if count is not None}
    if bias is not None and (counts_of(bias) or clashes(bias, counts)):
        raise m.refused("its third input has a size that depends on the data")
    m.replace((m.again(x, y, *[bias][: bias is not None])[0], counts))


def clashes(bias: ir.Value, counts: dict[int, Count]) -> bool:
    """Whether a bias has an extent of its own along a counted axis."""
    shape = (1, 1, *shape_of(bias))[-2:]
    return any(shape[axis] != 1 for axis in counts)


def rows(m: Maker) -> None:
    """Operators that treat each element of the first axis on its own."""
    x = m.input(0)
    others = [v for v in m.node.inputs[1:] if counts_of(v)]
    if set(counts_of(x)) - {0} or others:
        raise m.refused("it works along an axis whose size depends on the data")
    made = m.again(*m.node.inputs)
    m.replace(*[(value, counts_of(x)) for value in made])


def regions(m: Maker) -> None:
    """RoiAlign: regions that do not count lie in the first image."""
    x, boxes, images = m.input(0), m.input(1), m.input(2)
    if counts_of(x) or set(counts_of(boxes)) - {0}:
        raise m.refused("it works along an axis whose size depends on the data")
    size = m.same(sizes_of(boxes)[0], sizes_of(images)[0])
    extent = min(shape_of(boxes)[0], shape_of(images)[0])
    boxes, images = m.cut(boxes, 0, extent), m.cut(images, 0, extent)
    made: list[ir.Value] = [
        m.bounded(v, shape_of(v), 0, size, np.array(0)) for v in (boxes, images)
    ]
    counts = {0: size} if isinstance(size, Count) else {}
    m.replace((m.again(x, *made)[0], counts))
