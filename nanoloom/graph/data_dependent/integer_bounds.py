"""What an integer that the program computes may be: from where to where.

Only what exporters compute sizes with: moved, added, multiplied, compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from nanoloom.graph.types import is_static, shape_of

Array = np.ndarray
Limits = tuple[Array, Array]  # the least and the largest, int64, of each element
KEY = "nanoloom.limits"  # in the `meta` of a value: (least, largest) of all elements
MOST = 1 << 40  # anything beyond is not known
FEW = 1024  # elements that are looked at


def limits_of(value: ir.Value, rules: Mapping[str, Rule] | None = None) -> Limits:
    """Of each element of a small tensor of static shape.

    rules: of operators; RULES unless others are given.
    """
    rules = RULES if rules is None else rules
    shape = shape_of(value)
    unknown = np.full(shape, -MOST), np.full(shape, MOST)
    known = value.const_value
    if int(np.prod(shape, dtype=np.int64)) > FEW:
        return unknown
    if known is not None:
        array = whole(known.numpy())
        return unknown if array is None else (array, array)
    if KEY in value.meta:
        low, high = value.meta[KEY]
        return np.full(shape, low), np.full(shape, high)
    node = value.producer()
    rule = None if node is None else rules.get(node.op_type)
    if node is None or rule is None or value is not node.outputs[0]:
        return unknown
    given = [x for x in node.inputs if x is not None and x.dtype is not None]
    if len(given) < len(node.inputs) or not all(is_static(x) for x in given):
        return unknown
    found = rule(node, [limits_of(x, rules) for x in given])
    if found is None:
        return unknown
    low, high = (np.clip(x.astype(np.int64), -MOST, MOST) for x in found)
    return (low, high) if low.shape == shape else unknown


def whole(array: Array) -> Array | None:
    """Integers, or floats that are some; None for others."""
    if array.dtype.kind in "iu":
        return array
    is_float = array.dtype.kind == "f" and bool(np.isfinite(array).all())
    if not is_float or (array != np.rint(array)).any() or (abs(array) >= MOST).any():
        return None
    return array.astype(np.int64)


def known_ints(value: ir.Value | None) -> list[int] | None:
    """The elements of a constant; None for other values."""
    if value is None or value.const_value is None:
        return None
    return [int(n) for n in value.const_value.numpy().reshape(-1)]


def is_bounded(limits: Limits) -> bool:
    return bool((limits[0] > -MOST).all() and (limits[1] < MOST).all())


Rule = Callable[[ir.Node, Sequence[Limits]], Limits | None]


def monotone(move: Callable[..., Array]) -> Rule:
    """An operator that gives more, or the same, for more."""

    def rule(node: ir.Node, given: Sequence[Limits]) -> Limits | None:
        del node
        return move(*[low for low, _ in given]), move(*[high for _, high in given])

    return rule


def arithmetic(corners: Callable[[Array, Array], Array]) -> Rule:
    """An operator of two whose extremes are those of its operands' extremes."""

    def rule(node: ir.Node, given: Sequence[Limits]) -> Limits | None:
        del node
        if not all(is_bounded(x) for x in given):
            return None
        (a, b), (c, d) = given
        made = [
            corners(x.astype(float), y.astype(float)) for x in (a, b) for y in (c, d)
        ]
        low, high = np.minimum.reduce(made), np.maximum.reduce(made)
        return np.clip(low, -MOST, MOST), np.clip(high, -MOST, MOST)

    return rule


def divided(node: ir.Node, given: Sequence[Limits]) -> Limits | None:
    """By a known positive number, of what is not below 0."""
    x, by = given
    dtype = node.outputs[0].dtype
    if dtype is None or not dtype.is_integer() or not is_bounded(x):
        return None
    if (by[0] != by[1]).any() or (by[0] < 1).any() or (x[0] < 0).any():
        return None
    return x[0] // by[0], x[1] // by[1]


def shaped(node: ir.Node, given: Sequence[Limits]) -> Limits | None:
    """The same elements in the output's shape."""
    shape = node.outputs[0].shape
    if shape is None or not is_static(node.outputs[0]):
        return None
    shape, (low, high) = shape_of(node.outputs[0]), given[0]
    if low.size != np.prod(shape, dtype=np.int64):
        return None
    return low.reshape(shape), high.reshape(shape)


def converted(node: ir.Node, given: Sequence[Limits]) -> Limits | None:
    """Between integers, or to floats and back: they stay whole."""
    x = node.inputs[0]
    assert x is not None
    if x.dtype is None or (x.dtype.is_floating_point() and not is_bounded(given[0])):
        return None
    return given[0]


def gathered(node: ir.Node, given: Sequence[Limits]) -> Limits | None:
    places, axis = node.inputs[1], node.attributes.get("axis")
    if places is None or places.const_value is None:
        return None
    at, along = places.const_value.numpy(), axis.as_int() if axis is not None else 0
    if not given[0][0].shape[along]:  # the operator says that there is no place
        return None
    low, high = (np.take(x, at, along, mode="wrap") for x in given[0])
    return low, high


def sliced(node: ir.Node, given: Sequence[Limits]) -> Limits | None:
    (low, high) = given[0]
    numbers = [known_ints(x) for x in node.inputs[1:]]
    if low.ndim != 1 or any(n is None or len(n) != 1 for n in numbers):
        return None
    starts, ends, *rest = [n[0] for n in numbers if n is not None]
    part = slice(starts, ends, rest[1] if len(rest) > 1 else 1)
    return low[part], high[part]


def joined(node: ir.Node, given: Sequence[Limits]) -> Limits | None:
    axis = node.attributes["axis"].as_int()
    low, high = (np.concatenate([x[i] for x in given], axis) for i in (0, 1))
    return low, high


def chosen(node: ir.Node, given: Sequence[Limits]) -> Limits | None:
    del node
    _, one, other = given
    return np.minimum(one[0], other[0]), np.maximum(one[1], other[1])


def folded(over: Callable[..., Array]) -> Rule:
    """A reduction of all elements."""

    def rule(node: ir.Node, given: Sequence[Limits]) -> Limits | None:
        shape, (low, high) = shape_of(node.outputs[0]), given[0]
        if int(np.prod(shape, dtype=np.int64)) != 1 or low.size == 0:
            return None
        return over(low).reshape(shape), over(high).reshape(shape)

    return rule


RULES: dict[str, Rule] = {
    "Add": arithmetic(np.add),
    "Cast": converted,
    "Concat": joined,
    "Div": divided,
    "Expand": lambda node, given: shaped(node, given[:1]),
    "Gather": gathered,
    "Identity": shaped,
    "Max": monotone(lambda *x: np.maximum.reduce(np.broadcast_arrays(*x))),
    "Min": monotone(lambda *x: np.minimum.reduce(np.broadcast_arrays(*x))),
    "Mul": arithmetic(np.multiply),
    "ReduceMax": folded(np.max),
    "ReduceMin": folded(np.min),
    "Reshape": shaped,
    "Slice": sliced,
    "Squeeze": shaped,
    "Sub": arithmetic(np.subtract),
    "Unsqueeze": shaped,
    "Where": chosen,
}
