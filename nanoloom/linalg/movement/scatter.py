"""Operators that write at run-time indices: one update after the other, in order.

The updates run in the order of their indices, so that with equal indices the result is
always the same: the last one wins, and sums are formed in that order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from nanoloom.ir.mlir import ir, tensor
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.checks import Check
from nanoloom.linalg.builder.generic import from_body, to_body
from nanoloom.linalg.builder.index_checks import (
    check,
    check_columns,
    index_range,
    passes,
)
from nanoloom.linalg.builder.indexing import INT64, wrapped
from nanoloom.linalg.builder.loops import repeat
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, constant, select
from nanoloom.linalg.builder.slices import drop_dims, index, read, write
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.builder.tensor_slices import Number

Combine = Callable[[Scalar, Scalar], Scalar]
Update = Callable[[Tensor, list[ir.Value]], Tensor]

REDUCTIONS: dict[str, Combine] = {
    "none": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "max": lambda old, new: old.maximum(new),
    "min": lambda old, new: old.minimum(new),
}


def nest(
    b: Builder,
    extents: Sequence[int],
    whole: Tensor,
    update: Update,
    outer: Sequence[ir.Value] = (),
) -> Tensor:
    """whole = update(whole, indices) for all indices below the extents, in order."""
    if not extents:
        return update(whole, list(outer))
    return repeat(
        b,
        extents[0],
        [whole],
        lambda i, now: [nest(b, extents[1:], now[0], update, [*outer, i])],
    )[0]


def guarded(
    b: Builder, check: Check | None, extents: Sequence[int], x: Tensor, update: Update
) -> Tensor:
    """`nest`, or x as it is where a run finds an index out of range.

    The call fails then, and x may be memory of its caller.
    """
    if check is None:
        return nest(b, extents, x, update)
    trips = select(passes(b, check), constant(1, INT64), constant(0, INT64)).index()
    made = repeat(b, trips, [x], lambda _, now: [nest(b, extents, now[0], update)])
    return made[0]


def combined(node: Node) -> Combine:
    name = node.string("reduction", "none")
    if name not in REDUCTIONS:
        raise node.unsupported(f"reduction {name}")
    if name == "add" and node.input(0).dtype == np.bool_:
        return lambda old, new: old | new
    return REDUCTIONS[name]


def place(b: Builder, indices: Tensor, at: list[ir.Value], extent: int) -> ir.Value:
    """One run-time index of a tensor of indices, in range."""
    found = tensor.extract(b.value(indices), at)
    return wrapped(Scalar(found, indices.dtype), extent).index()


def put(
    b: Builder, whole: Tensor, at: list[ir.Value], new: Scalar, combine: Combine
) -> Tensor:
    """One element of `whole` combined with a new one."""
    old = to_body(tensor.extract(b.value(whole), at), whole.dtype)
    made = from_body(combine(old, new), whole.dtype)
    value = tensor.InsertOp(made, b.value(whole), at).result
    return b.tensor(value, whole.dtype)


def scatter_elements(b: Builder, node: Node) -> Tensor:
    """out[indices[i, j], j] = updates[i, j] for axis 0."""
    x, indices, updates = node.input(0), node.input(1), node.input(2)
    axis, combine = node.int("axis") % x.rank, combined(node)
    checked = check(b, node, indices, index_range(x.shape[axis]))

    def update(whole: Tensor, i: list[ir.Value]) -> Tensor:
        here = place(b, indices, i, x.shape[axis])
        at = [here if d == axis else i[d] for d in range(x.rank)]
        new = to_body(tensor.extract(b.value(updates), i), x.dtype)
        return put(b, whole, at, new, combine)

    return guarded(b, checked, indices.shape, x, update) if updates.size else x


def scatter_nd(b: Builder, node: Node) -> Tensor:
    """out[*indices[i..., :]] = updates[i...], elements or whole slices.

    axes: those that indices are of, where they are not the first ones
    (graph/scatter_axes.py).
    """
    x, indices, updates = node.input(0), node.input(1), node.input(2)
    outer, depth = indices.shape[:-1], indices.shape[-1]
    combine, axes = combined(node), node.ints("axes", range(depth))
    columns = b.reshape(indices, (math.prod(outer), depth))
    ranges = [index_range(x.shape[d]) for d in axes]
    checked = check_columns(b, node, columns, ranges)
    sizes = [1 if d in axes else s for d, s in enumerate(x.shape)]
    rest = drop_dims(x.shape, axes)

    def update(whole: Tensor, i: list[ir.Value]) -> Tensor:
        at = [place(b, indices, [*i, index(n)], x.shape[d]) for n, d in enumerate(axes)]
        places: list[Number] = [0] * x.rank
        for axis, here in zip(axes, at, strict=True):
            places[axis] = here
        if depth == x.rank:
            new = to_body(tensor.extract(b.value(updates), i), x.dtype)
            return put(b, whole, at, new, combine)
        lead = list(range(len(outer)))
        begin, shape = [*i, *[0] * len(rest)], [*[1] * len(outer), *rest]
        new = read(b, updates, begin, shape, lead)
        if node.string("reduction", "none") != "none":
            new = b.elementwise(combine, read(b, whole, places, sizes, axes), new)
        return write(b, new, whole, places, sizes)

    return guarded(b, checked, outer, x, update) if updates.size else x


OPERATORS = {
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
}
