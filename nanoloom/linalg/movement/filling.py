"""Tensors made from positions: ranges, identities, triangles; Shape and Size."""

from __future__ import annotations

import numpy as np

from nanoloom.linalg.builder.builder import Builder, Map, computed_as
from nanoloom.linalg.builder.indexing import INT64, map_generic, position
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, constant, select
from nanoloom.linalg.builder.tensor import Tensor


def shape(b: Builder, node: Node) -> Tensor:
    x = node.input(0)
    last = node.int("end", x.rank)
    return b.constant(np.array(x.shape[node.int("start") : last], np.int64))


def size(b: Builder, node: Node) -> Tensor:
    return b.constant(np.array(node.input(0).size, np.int64))


def constant_of_shape(b: Builder, node: Node) -> Tensor:
    number = 0
    if node.has("value"):
        number = node.attributes["value"].as_tensor().numpy().reshape(-1)[0].item()
    return b.full(node.output_shapes[0], number, node.output_dtypes[0])


def range_(b: Builder, node: Node) -> Tensor:
    """start + i * delta, for a length that is known.

    A start that is known stands in the code, where it may become a size.
    """
    start, delta = node.input(0), node.input(2)
    dtype = node.output_dtypes[0]
    inner, scalar = computed_as(dtype), Map.get(1, 0, [])
    given = [b.reshape(x, ()) for x in (start, delta) if not x.is_constant]

    def body(*scalars: Scalar) -> Scalar:
        found = iter(scalars)
        first, step = (
            constant(x.array().item(), inner) if x.is_constant else next(found)
            for x in (start, delta)
        )
        return first + position(0).cast(inner) * step

    inputs = [(x, scalar) for x in given]
    return map_generic(b, node.output_shapes[0], dtype, inputs, body)


def eye_like(b: Builder, node: Node) -> Tensor:
    dtype, k = node.output_dtypes[0], node.int("k")
    inner = computed_as(dtype)

    def body(row: Scalar, column: Scalar) -> Scalar:
        return select(column.equal(row + k), constant(1, inner), constant(0, inner))

    return b.generate(node.output_shapes[0], dtype, body)


def trilu(b: Builder, node: Node) -> Tensor:
    """The upper or lower triangle of each matrix, zero elsewhere."""
    x = node.input(0)
    upper = bool(node.int("upper", 1))
    given = node.optional(1)
    k = b.constant(np.array(0, np.int64)) if given is None else b.reshape(given, ())

    def body(element: Scalar, offset: Scalar) -> Scalar:
        row, column = position(x.rank - 2), position(x.rank - 1)
        kept = column >= row + offset if upper else column <= row + offset
        return select(kept, element, constant(0, element.dtype))

    return b.elementwise(body, x, b.cast(k, INT64))


OPERATORS = {
    "ConstantOfShape": constant_of_shape,
    "EyeLike": eye_like,
    "Range": range_,
    "Shape": shape,
    "Size": size,
    "Trilu": trilu,
}
