"""Elementwise bodies over tensors that are broadcast as in numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.generic import PARALLEL, Body, Generics, Map, computed_as
from nanoloom.linalg.builder.scalar import Number, Scalar, constant
from nanoloom.linalg.builder.tensor import Tensor


class Broadcasting(Generics):
    """Elements of several tensors at the same place."""

    def elementwise(
        self,
        body: Body,
        *inputs: Tensor,
        dtype: np.dtype | None = None,
        shape: Sequence[int] | None = None,
    ) -> Tensor:
        """body(scalars of the inputs) for each element, inputs broadcast as in numpy.

        One-element constants become constants of the body.  A tensor given twice is one
        operand: each use of an operand is tiled for itself, and so is what makes it, so
        a chain of x + x would be computed 2^n times.  Result: `dtype` (default: the
        first input's), the broadcast shape (or `shape`, which it must match).
        """
        made = dtype or inputs[0].dtype
        full = tuple(shape) if shape is not None else broadcast(inputs)
        inside, outside = split_scalars(inputs)
        operands = {id(x): x for x in outside}
        maps = [(x, broadcast_map(x.shape, full)) for x in operands.values()]

        def with_constants(*scalars: Scalar) -> Scalar | Sequence[Scalar]:
            given = dict(zip(operands, scalars, strict=True))
            return body(
                *[
                    constant(inside[i], computed_as(x.dtype))
                    if i in inside
                    else given[id(x)]
                    for i, x in enumerate(inputs)
                ]
            )

        out = Tensor(full, made, self.empty(full, made))
        return self.generic(
            maps,
            [(out, Map.get_identity(len(full)))],
            [PARALLEL] * len(full),
            lambda *s: with_constants(*s[:-1]),
        )[0]

    def full(self, shape: Sequence[int], number: Number, dtype: np.dtype) -> Tensor:
        """A tensor with one value everywhere."""
        return self.elementwise(
            lambda: constant(number, computed_as(dtype)), shape=shape, dtype=dtype
        )

    def cast(self, x: Tensor, dtype: np.dtype) -> Tensor:
        if x.dtype == dtype:
            return x
        exact = dtype if x.dtype == np.float64 else computed_as(dtype)
        return self.elementwise(lambda s: s.cast(exact), x, dtype=dtype)


def broadcast(inputs: Sequence[Tensor]) -> tuple[int, ...]:
    """The shape numpy gives to these operands together."""
    return np.broadcast_shapes(*[x.shape for x in inputs])


def broadcast_map(shape: tuple[int, ...], full: tuple[int, ...]) -> Map:
    """From the full index to an operand of `shape` that is broadcast to `full`."""
    lead = len(full) - len(shape)
    places = [
        ir.AffineConstantExpr.get(0)
        if size == 1 and full[lead + d] != 1
        else ir.AffineDimExpr.get(lead + d)
        for d, size in enumerate(shape)
    ]
    return Map.get(len(full), 0, places)


def split_scalars(
    inputs: Sequence[Tensor],
) -> tuple[dict[int, Number], list[Tensor]]:
    """One-element constants by position, and the other tensors in order."""
    inside = {
        i: x.array().reshape(-1)[0].item()
        for i, x in enumerate(inputs)
        if x.is_constant and x.size == 1 and x.value is None
    }
    return inside, [x for i, x in enumerate(inputs) if i not in inside]
