"""Operators that read at run-time indices: Gather and its kin, ReverseSequence, OneHot.

A negative index counts from the end.  The loops of a Gather run over the result, so
what lies behind the gathered axis is read and written contiguously.
"""

from __future__ import annotations

from math import prod

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import Builder, Map, computed_as
from nanoloom.linalg.builder.index_checks import check, check_columns, index_range
from nanoloom.linalg.builder.indexing import (
    INT64,
    dims,
    known_indices,
    map_generic,
    position,
    take,
    wrapped,
)
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, constant, select
from nanoloom.linalg.builder.tensor import Tensor


def gather(b: Builder, node: Node) -> Tensor:
    """out[a..., i..., c...] = x[a..., indices[i...], c...]."""
    x, indices = node.input(0), node.input(1)
    axis = node.int("axis") % x.rank
    extent, shape = x.shape[axis], node.output_shapes[0]
    check(b, node, indices, index_range(extent))
    if indices.is_constant:
        places = known_indices(indices.array().reshape(-1), extent)
        return b.reshape(take(b, x, places, axis), shape)
    rows = with_whole_rows(b, x, axis + 1)
    source, behind = b.value(rows), rows.shape[axis + 1 :]
    made = (*x.shape[:axis], *indices.shape, *behind)
    rank, before = len(made), range(axis)
    after = range(rank - len(behind), rank)

    def body(index: Scalar) -> Scalar:
        at = [*map(position, before), wrapped(index, extent), *map(position, after)]
        return b.load(source, x.dtype, at)

    where = dims(rank, range(axis, axis + indices.rank))
    return b.reshape(map_generic(b, made, x.dtype, [(indices, where)], body), shape)


def with_whole_rows(b: Builder, x: Tensor, first: int) -> Tensor:
    """All axes from one on as a single one: no short row is copied by itself."""
    if x.rank - first < 2:
        return x
    return b.reshape(x, (*x.shape[:first], prod(x.shape[first:])))


def gather_elements(b: Builder, node: Node) -> Tensor:
    """out[i, j, k] = x[indices[i, j, k], j, k] for axis 0."""
    x, indices = node.input(0), node.input(1)
    axis = node.int("axis") % x.rank
    check(b, node, indices, index_range(x.shape[axis]))
    source = b.value(x)

    def body(index: Scalar) -> Scalar:
        here = wrapped(index, x.shape[axis])
        at = [here if d == axis else position(d) for d in range(x.rank)]
        return b.load(source, x.dtype, at)

    identity = Map.get_identity(x.rank)
    return map_generic(b, indices.shape, x.dtype, [(indices, identity)], body)


def gather_nd(b: Builder, node: Node) -> Tensor:
    """out[b..., i..., c...] = x[b..., *indices[b..., i..., :], c...]."""
    x, indices = node.input(0), node.input(1)
    batch, depth = node.int("batch_dims"), indices.shape[-1]
    shape, outer = node.output_shapes[0], indices.rank - 1
    rows = with_whole_rows(b, x, batch + depth)
    behind = rows.shape[batch + depth :]
    rank = outer + len(behind)
    columns = b.reshape(indices, (indices.size // max(depth, 1), depth))
    ranges = [index_range(extent) for extent in x.shape[batch : batch + depth]]
    check_columns(b, node, columns, ranges)
    source = b.value(rows)

    def body(*index: Scalar) -> Scalar:
        inner = [wrapped(i, x.shape[batch + d]) for d, i in enumerate(index)]
        front = [position(d) for d in range(batch)]
        return b.load(
            source, x.dtype, [*front, *inner, *map(position, range(outer, rank))]
        )

    places = [ir.AffineDimExpr.get(d) for d in range(outer)]
    inputs = [
        (indices, Map.get(rank, 0, [*places, ir.AffineConstantExpr.get(k)]))
        for k in range(depth)
    ]
    made = (*indices.shape[:-1], *behind)
    return b.reshape(map_generic(b, made, x.dtype, inputs, body), shape)


def reverse_sequence(b: Builder, node: Node) -> Tensor:
    """The first lengths[i] elements along time in reverse order, the rest as it is."""
    x, lengths = node.input(0), node.input(1)
    batch, time = node.int("batch_axis", 1), node.int("time_axis", 0)
    check(b, node, lengths, range(x.shape[time] + 1), "length")
    source = b.value(x)

    def body(length: Scalar) -> Scalar:
        t = position(time)
        turned = select(t < length, length - t - 1, t)
        here = turned.minimum(x.shape[time] - 1)
        at = [here if d == time else position(d) for d in range(x.rank)]
        return b.load(source, x.dtype, at)

    along = dims(x.rank, [batch])
    return map_generic(b, x.shape, x.dtype, [(b.cast(lengths, INT64), along)], body)


def one_hot(b: Builder, node: Node) -> Tensor:
    """values[1] where the index equals the place along the new axis, else values[0]."""
    indices, values = node.input(0), node.input(2)
    shape = node.output_shapes[0]
    rank = len(shape)
    axis = node.int("axis", -1) % rank
    around = dims(rank, [d for d in range(rank) if d != axis])
    scalar = Map.get(rank, 0, [])
    choices = (
        [(b.reshape(b.slice(values, [i], [1]), ()), scalar) for i in range(2)]
        if not values.is_constant
        else []
    )

    def body(index: Scalar, *given: Scalar) -> Scalar:
        off, on = given or [
            constant(values.array()[i].item(), computed_as(values.dtype))
            for i in range(2)
        ]
        wide = index.cast(INT64)
        here = select(wide < 0, wide + shape[axis], wide)
        return select(here.equal(position(axis)), on, off)

    return map_generic(b, shape, values.dtype, [(indices, around), *choices], body)


def tensor_scatter(b: Builder, node: Node) -> Tensor:
    """`update` written into a cache from a place of its own in each batch row."""
    x, update = node.input(0), node.input(1)
    axis = node.int("axis", -2) % x.rank
    circular = node.string("mode", "linear") == "circular"
    starts = node.optional(2) or b.constant(np.zeros(x.shape[0], np.int64))
    source, length, size = b.value(update), update.shape[axis], x.shape[axis]
    if not circular:
        check(b, node, starts, range(size - length + 1), "write index")

    def body(old: Scalar, start: Scalar) -> Scalar:
        at = position(axis) - start
        if circular:
            at = at.remainder(size)
            at = select(at < 0, at + size, at)
        inside = (at >= 0) & (at < length)
        safe = at.maximum(0).minimum(max(length - 1, 0))
        places = [safe if d == axis else position(d) for d in range(x.rank)]
        return select(inside, b.load(source, x.dtype, places), old)

    inputs = [(x, Map.get_identity(x.rank)), (b.cast(starts, INT64), dims(x.rank, [0]))]
    return map_generic(b, x.shape, x.dtype, inputs, body)


OPERATORS = {
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "OneHot": one_hot,
    "ReverseSequence": reverse_sequence,
    "TensorScatter": tensor_scatter,
}
