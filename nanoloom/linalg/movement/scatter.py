"""Operators that write at run-time indices: one update after the other, in order.

The updates run in the order of their indices, so that with equal indices the result is
always the same: the last one wins, and sums are formed in that order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from nanoloom.ir.mlir import ir, tensor
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.generic import from_body, to_body
from nanoloom.linalg.builder.index_checks import check, check_columns, index_range
from nanoloom.linalg.builder.indexing import wrapped
from nanoloom.linalg.builder.loops import repeat
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.slices import index, read, write
from nanoloom.linalg.builder.tensor import Tensor

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


def combined(node: Node) -> Combine:
    name = node.string("reduction", "none")
    if name not in REDUCTIONS:
        raise node.unsupported(f"reduction {name}")
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
    check(b, node, indices, index_range(x.shape[axis]))

    def update(whole: Tensor, i: list[ir.Value]) -> Tensor:
        here = place(b, indices, i, x.shape[axis])
        at = [here if d == axis else i[d] for d in range(x.rank)]
        new = to_body(tensor.extract(b.value(updates), i), x.dtype)
        return put(b, whole, at, new, combine)

    return nest(b, indices.shape, x, update) if updates.size else x


def scatter_nd(b: Builder, node: Node) -> Tensor:
    """out[*indices[i..., :]] = updates[i...], elements or whole slices."""
    x, indices, updates = node.input(0), node.input(1), node.input(2)
    outer, depth = indices.shape[:-1], indices.shape[-1]
    combine = combined(node)
    columns = b.reshape(indices, (math.prod(outer), depth))
    check_columns(b, node, columns, [index_range(s) for s in x.shape[:depth]])
    slice_shape = x.shape[depth:]
    ones, gone = [1] * depth, list(range(depth))

    def update(whole: Tensor, i: list[ir.Value]) -> Tensor:
        at = [place(b, indices, [*i, index(d)], x.shape[d]) for d in range(depth)]
        if depth == x.rank:
            new = to_body(tensor.extract(b.value(updates), i), x.dtype)
            return put(b, whole, at, new, combine)
        rest = [0] * len(slice_shape)
        lead = list(range(len(outer)))
        new = read(b, updates, [*i, *rest], [*[1] * len(outer), *slice_shape], lead)
        places, sizes = [*at, *rest], [*ones, *slice_shape]
        if node.string("reduction", "none") != "none":
            new = b.elementwise(combine, read(b, whole, places, sizes, gone), new)
        return write(b, new, whole, places, sizes)

    return nest(b, outer, x, update) if updates.size else x


OPERATORS = {
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
}
