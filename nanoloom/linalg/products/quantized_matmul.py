"""nanoloom.integer.MatMul: what the graph stage makes of quantized matrix products.

Inputs: a [..., m, k] and b [..., k, n] of 8 bits, a_zero [] and b_zero [] or [n] (or
omitted: 0), factor and offset [] or [n] (offset omitted: 0), y_zero [] (omitted: 0).
Output of 8 bits, factor and offset float64:

    saturate(round(sum (a - a_zero) (b - b_zero) * factor + offset) + y_zero)

Attribute relu: what is rounded is at least 0.  Output, factor and offset float32: the
same without rounding, relu and saturation.  The sums are those of `integer_matmul`:
exact, for the graph stage keeps k small enough.
"""

from __future__ import annotations

import numpy as np

from nanoloom.linalg.products.integer_matmul import by_column, sums
from nanoloom.linalg.words.builder import Builder
from nanoloom.linalg.words.node import Node
from nanoloom.linalg.words.placed import combine
from nanoloom.linalg.words.scalar import Scalar, is_float
from nanoloom.linalg.words.tensor import Tensor

INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)
SHIFT = 1.5 * 2.0**52  # f64 of this size are integers: an addition rounds to one
MOST = 2.0**30  # rounded values up to here are int32 with room for a zero point
WIDEST = 255**2  # of one product


def quantized_matmul(b: Builder, node: Node) -> Tensor:
    """One contraction of 8-bit integers; all else is its elementwise epilogue."""
    x, y, factor = node.input(0), node.input(1), node.input(4)
    dtype, wide = node.output_dtypes[0], factor.dtype
    offset, zero = node.optional(5), node.optional(6)
    total = sums(b, x, y, node.optional(2), node.optional(3))
    terms = [t for t in (factor, offset) if t is not None]
    is_small = largest(x.shape[-1], *terms) < MOST

    def body(s: Scalar, by: Scalar, *added: Scalar) -> Scalar:
        value = s.cast(wide) * by
        for more in added:
            value = value + more
        if is_float(dtype):
            return value
        whole = rounded(value if is_small else value.maximum(-MOST).minimum(MOST))
        start = 0 if zero is None else int(zero.array())
        low, high = (int(end) - start for end in limits(dtype))
        least = max(low, 0) if node.int("relu") else low
        return (whole.maximum(least).minimum(high) + start).cast(dtype)

    given = [by_column(b, t, x, total.rank) for t in terms]
    return combine(b, body, total.shape, dtype, total, *given)


def largest(depth: int, factor: Tensor, *offset: Tensor) -> float:
    """What the scaled sums are at most: offsets included, without their sign."""
    parts = [abs(t.array()).max() for t in (factor, *offset)]
    return float(depth * WIDEST * parts[0] + sum(parts[1:]))


def limits(dtype: np.dtype) -> tuple[int, int]:
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def rounded(value: Scalar) -> Scalar:
    """An f64 as int32, ties to even: the low bits of a sum that has no fraction."""
    return (value + SHIFT).bitcast(INT64).cast(INT32)


OPERATORS = {"nanoloom.integer.MatMul": quantized_matmul}
