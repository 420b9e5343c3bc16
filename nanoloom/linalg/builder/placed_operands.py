"""Elementwise generics that read tensors of fewer dimensions where they stand.

A row maximum, a channel's scale, a mean over the last dimensions: each is read through
an affine map that drops the dimensions it does not have.  No reshape to ones stands in
between, so that producer and consumer can be fused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import Body, Builder, Map, computed_as
from nanoloom.linalg.builder.indexing import map_generic
from nanoloom.linalg.builder.scalar import Number, Scalar, constant
from nanoloom.linalg.builder.tensor import Tensor


@dataclass(frozen=True)
class BroadcastOperand:
    """A tensor, and the dimension of the result that each of its own follows."""

    tensor: Tensor
    dims: tuple[int, ...]

    def map(self, shape: Sequence[int]) -> ir.AffineMap:
        """From the result's index to the tensor's; extents of 1 are repeated."""
        places = [
            ir.AffineDimExpr.get(d)
            if size == shape[d]
            else ir.AffineConstantExpr.get(0)
            for size, d in zip(self.tensor.shape, self.dims, strict=True)
        ]
        return Map.get(len(shape), 0, places)


@dataclass(frozen=True)
class BlockedOperand(BroadcastOperand):
    """A tensor of the result's rank; one element serves `block` places along `axis`."""

    axis: int
    block: int

    def map(self, shape: Sequence[int]) -> ir.AffineMap:
        places = [
            ir.AffineExpr.get_floor_div(ir.AffineDimExpr.get(d), self.block)
            if d == self.axis
            else ir.AffineDimExpr.get(d)
            for d in range(len(shape))
        ]
        return Map.get(len(shape), 0, places)


def number_of(x: Tensor) -> Number | None:
    """The only element of a constant, if it is one and has only one."""
    if x.is_constant and x.value is None and x.size == 1:
        return x.array().reshape(-1)[0].item()
    return None


def along_axis(x: Tensor, first: int) -> BroadcastOperand:
    """x's dimensions stand for the result's from `first` on."""
    return BroadcastOperand(x, tuple(range(first, first + x.rank)))


def combine(
    b: Builder,
    body: Body,
    shape: Sequence[int],
    dtype: np.dtype,
    *operands: Tensor | BroadcastOperand,
) -> Tensor:
    """body(one element of each operand) for every element of the result.

    A bare tensor has the result's shape; one-element constants become constants of
    the body.  f16 and bf16 arrive as f32, and are rounded once if `dtype` is one.
    """
    placed = [along_axis(x, 0) if isinstance(x, Tensor) else x for x in operands]
    numbers = [number_of(x.tensor) for x in placed]
    read = [
        (x.tensor, x.map(shape))
        for x, number in zip(placed, numbers, strict=True)
        if number is None
    ]

    def with_constants(*scalars: Scalar) -> Scalar | Sequence[Scalar]:
        given = iter(scalars)
        return body(
            *[
                next(given)
                if number is None
                else constant(number, computed_as(x.tensor.dtype))
                for x, number in zip(placed, numbers, strict=True)
            ]
        )

    return map_generic(b, shape, dtype, read, with_constants)
