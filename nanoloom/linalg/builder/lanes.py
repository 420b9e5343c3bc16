"""Vectors of 64 bytes in code that no schedule vectorizes: scalars with lanes.

A `Scalar` whose value is a vector takes the same operators, on constants that are
made here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nanoloom.ir.mlir import arith, ir, vector
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.scalar import Number, Scalar, compute_type, constant
from nanoloom.linalg.builder.tensor import Tensor

BYTES = 64


def lanes_of(dtype: np.dtype) -> int:
    return BYTES // dtype.itemsize


def vector_type(dtype: np.dtype) -> ir.VectorType:
    return ir.VectorType.get([lanes_of(dtype)], compute_type(dtype))


def splat(x: Scalar) -> Scalar:
    """A number in each lane."""
    return Scalar(vector.broadcast(vector_type(x.dtype), x.value), x.dtype)


def each(number: Number, dtype: np.dtype) -> Scalar:
    """A constant in each lane."""
    return splat(constant(number, dtype))


def counting(dtype: np.dtype) -> Scalar:
    """0, 1, 2, ... of an integer type."""
    numbers = [
        ir.IntegerAttr.get(compute_type(dtype), n) for n in range(lanes_of(dtype))
    ]
    kind = vector_type(dtype)
    return Scalar(arith.constant(kind, ir.DenseElementsAttr.get(numbers, kind)), dtype)


def load(
    b: Builder, x: Tensor, places: Sequence[ir.Value], *, within: bool = True
) -> Scalar:
    """Elements along the last axis of a tensor from a place on; 0 behind its end.

    within: none is behind it.
    """
    made = vector.transfer_read(
        vector_type(x.dtype),
        b.value(x),
        list(places),
        ir.AffineMapAttr.get(ir.AffineMap.get_minor_identity(x.rank, 1)),
        constant(0, x.dtype).value,
        ir.ArrayAttr.get([ir.BoolAttr.get(within)]),
    )
    return Scalar(made, x.dtype)


def stored(
    b: Builder,
    x: Scalar,
    into: Tensor,
    places: Sequence[ir.Value],
    *,
    within: bool = True,
) -> Tensor:
    """`into` with lanes along its last axis from a place on, those up to its end.

    within: that is all of them.
    """
    made = vector.transfer_write(
        b.value(into).type,
        x.value,
        b.value(into),
        list(places),
        ir.AffineMapAttr.get(ir.AffineMap.get_minor_identity(into.rank, 1)),
        ir.ArrayAttr.get([ir.BoolAttr.get(within)]),
    )
    return b.tensor(made, into.dtype)


def least(x: Scalar) -> Scalar:
    """The least of the lanes, unsigned."""
    kind = vector.CombiningKind.MINUI
    return Scalar(vector.reduction(compute_type(x.dtype), kind, x.value), x.dtype)
