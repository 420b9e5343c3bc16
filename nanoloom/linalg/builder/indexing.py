"""Positions and run-time indices inside a linalg body."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nanoloom.ir.mlir import ir, linalg
from nanoloom.linalg.builder.builder import PARALLEL, Body, Builder, Map
from nanoloom.linalg.builder.scalar import Scalar, from_index, select
from nanoloom.linalg.builder.tensor import Array, Tensor

INT64 = np.dtype(np.int64)


def position(dimension: int) -> Scalar:
    """The current index of a dimension of the enclosing generic, as int64."""
    return from_index(linalg.IndexOp(dimension).result)


def wrapped(index: Scalar, extent: int) -> Scalar:
    """An ONNX index in [-extent, extent) as one in [0, extent).

    Anything outside is the model's mistake; it is clamped, so that no memory outside
    the tensor is read or written.
    """
    wide = index.cast(INT64)
    positive = select(wide < 0, wide + extent, wide)
    return positive.maximum(0).minimum(max(extent - 1, 0))


def known_indices(array: Array, extent: int) -> Array:
    """The same as `wrapped`, for indices known while compiling."""
    wide = array.astype(np.int64)
    return np.clip(np.where(wide < 0, wide + extent, wide), 0, max(extent - 1, 0))


def dims(count: int, places: Sequence[int]) -> ir.AffineMap:
    """The map of `count` loops to the loops at `places`."""
    return Map.get(count, 0, [ir.AffineDimExpr.get(p) for p in places])


def map_generic(
    b: Builder,
    shape: Sequence[int],
    dtype: np.dtype,
    inputs: Sequence[tuple[Tensor, ir.AffineMap]],
    body: Body,
) -> Tensor:
    """A tensor of `shape`, each element from the inputs' elements that the maps name.

    `body` may ask for `position` and load from other tensors.
    """
    out = Tensor(tuple(shape), dtype, b.empty(shape, dtype))
    return b.generic(
        inputs,
        [(out, Map.get_identity(len(shape)))],
        [PARALLEL] * len(shape),
        lambda *scalars: body(*scalars[:-1]),
    )[0]


def progression(indices: Array) -> tuple[int, int] | None:
    """(start, step > 0) where the indices are evenly spaced, so that a slice does."""
    if indices.size == 0:
        return None
    if indices.size == 1:
        return int(indices[0]), 1
    steps = np.diff(indices)
    step = int(steps[0])
    return (int(indices[0]), step) if step > 0 and (steps == step).all() else None


def take(b: Builder, x: Tensor, indices: Array, axis: int) -> Tensor:
    """numpy.take along an axis, with indices in range known while compiling."""
    shape = [indices.size if d == axis else s for d, s in enumerate(x.shape)]
    even = progression(indices)
    if even is not None:
        starts = [even[0] if d == axis else 0 for d in range(x.rank)]
        steps = [even[1] if d == axis else 1 for d in range(x.rank)]
        return b.slice(x, starts, shape, steps)
    return take_at(b, x, b.constant(indices.astype(np.int64)), axis)


def take_at(b: Builder, x: Tensor, table: Tensor, axis: int) -> Tensor:
    """The same with indices in range that the program computes."""
    shape = [table.size if d == axis else s for d, s in enumerate(x.shape)]
    source = b.value(x)

    def body(index: Scalar) -> Scalar:
        at = [index if d == axis else position(d) for d in range(x.rank)]
        return b.load(source, x.dtype, at)

    return map_generic(b, shape, x.dtype, [(table, dims(x.rank, [axis]))], body)
