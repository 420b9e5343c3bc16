"""What operator lowerings are written with: tensors in, `linalg.generic` out.

`generic.py` has the body over elements and the door to MLIR, `broadcasting.py` the
elementwise operations, `movement.py` what only moves; sums over elements are here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.generic import (
    PARALLEL,
    REDUCTION,
    Body,
    Map,
    computed_as,
    tensor_type,
)
from nanoloom.linalg.builder.movement import Movement
from nanoloom.linalg.builder.scalar import Number, Scalar
from nanoloom.linalg.builder.tensor import Tensor


class Builder(Movement):
    """Builds linalg at MLIR's current insertion point."""

    def reduce(
        self,
        body: Callable[[Scalar, Scalar], Scalar],
        x: Tensor,
        axes: Sequence[int],
        start: Number,
        *,
        keepdims: bool = True,
        dtype: np.dtype | None = None,
        prepare: Callable[[Scalar], Scalar] = lambda s: s,
    ) -> Tensor:
        """fold body(accumulator, prepare(element)) over `axes`, beginning with start.

        The accumulator has type `dtype` (default x's, f32 for f16 and bf16: the result
        is rounded once at the end).
        """
        made = dtype or x.dtype
        wide = computed_as(made)
        gone = {axis % x.rank for axis in axes} if x.rank else set[int]()
        kept = [d for d in range(x.rank) if d not in gone]
        shape = [x.shape[d] for d in kept]
        dims = [ir.AffineDimExpr.get(d) for d in kept]
        out = self.full(shape, start, wide)
        result = self.generic(
            [(x, Map.get_identity(x.rank))],
            [(out, Map.get(x.rank, 0, dims))],
            [REDUCTION if d in gone else PARALLEL for d in range(x.rank)],
            lambda element, sofar: body(sofar, prepare(element)),
        )[0]
        result = self.cast(result, made)
        if not keepdims:
            return result
        ones = [1 if d in gone else x.shape[d] for d in range(x.rank)]
        return self.reshape(result, ones)

    def einsum(
        self, equation: str, *inputs: Tensor, dtype: np.dtype | None = None
    ) -> Tensor:
        """A sum of products: "bmk,kn->bmn"; one letter a dimension, none repeated.

        Dimensions of extent 1 do not broadcast.  `dtype`: of the result; sums are kept
        in f32 for f16 and bf16, and in `dtype` for all others.
        """
        made = dtype or inputs[0].dtype
        wide = computed_as(made)
        left, result = equation.replace(" ", "").split("->")
        terms = left.split(",")
        letters = list(result) + sorted(set("".join(terms)) - set(result))
        extent = {
            letter: size
            for term, x in zip(terms, inputs, strict=True)
            for letter, size in zip(term, x.shape, strict=True)
        }

        def dims(term: str) -> Map:
            places = [ir.AffineDimExpr.get(letters.index(c)) for c in term]
            return Map.get(len(letters), 0, places)

        def body(*scalars: Scalar) -> Scalar:
            product = scalars[0].cast(wide)
            for factor in scalars[1:-1]:
                product = product * factor.cast(wide)
            return scalars[-1] + product

        start = self.full([extent[c] for c in result], 0, wide)
        summed = self.generic(
            [(x, dims(term)) for term, x in zip(terms, inputs, strict=True)],
            [(start, dims(result))],
            [PARALLEL if c in result else REDUCTION for c in letters],
            body,
        )[0]
        return self.cast(summed, made)


__all__ = [
    "PARALLEL",
    "REDUCTION",
    "Body",
    "Builder",
    "Map",
    "computed_as",
    "tensor_type",
]
