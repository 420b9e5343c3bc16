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

from nanoloom.linalg.builder import Builder
from nanoloom.linalg.integer_matmul import by_column, sums
from nanoloom.linalg.node import Node
from nanoloom.linalg.placed import combine
from nanoloom.linalg.quantization import saturated
from nanoloom.linalg.scalar import Scalar, is_float
from nanoloom.linalg.tensor import Tensor


def quantized_matmul(b: Builder, node: Node) -> Tensor:
    """One contraction of 8-bit integers; all else is its elementwise epilogue."""
    x, y, factor = node.input(0), node.input(1), node.input(4)
    dtype, wide = node.output_dtypes[0], factor.dtype
    offset, zero = node.optional(5), node.optional(6)
    start = 0 if zero is None else int(zero.array())
    total = sums(b, x, y, node.optional(2), node.optional(3))

    def body(s: Scalar, by: Scalar, *added: Scalar) -> Scalar:
        value = s.cast(wide) * by
        for more in added:
            value = value + more
        if is_float(dtype):
            return value
        whole = value.math("roundeven")
        if node.int("relu"):
            whole = whole.maximum(0)
        return saturated(whole + start if start else whole, dtype)

    given = [by_column(b, t, x, total.rank) for t in (factor, offset) if t is not None]
    return combine(b, body, total.shape, dtype, total, *given)


OPERATORS = {"nanoloom.integer.MatMul": quantized_matmul}
