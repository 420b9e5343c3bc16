"""nanoloom.integer.Sum: two 8-bit numbers of any scales, added and rounded to 8 bits.

Attributes by_a, by_b, start: factors and what is added, in f32; least, most: limits.
"""

from __future__ import annotations

import numpy as np

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.placed_operands import combine
from nanoloom.linalg.builder.requantization import nearest_integer, packed
from nanoloom.linalg.builder.scalar import Scalar, constant
from nanoloom.linalg.builder.tensor import Tensor

FLOAT32, INT32 = np.dtype(np.float32), np.dtype(np.int32)


def byte_sum(b: Builder, node: Node) -> Tensor:
    """round(clip(a * by_a + (b * by_b + start), least, most)); shapes are the same."""
    x, y, dtype = node.input(0), node.input(1), node.output_dtypes[0]
    by_x, by_y, start = (node.float(word) for word in ("by_a", "by_b", "start"))
    least, most, limits = node.int("least"), node.int("most"), np.iinfo(dtype)

    def body(one: Scalar, other: Scalar) -> Scalar:
        factors = constant(by_x, FLOAT32), constant(by_y, FLOAT32)
        inner = other.cast(INT32).cast(FLOAT32).times_plus(factors[1], start)
        total = one.cast(INT32).cast(FLOAT32).times_plus(factors[0], inner)
        # Limits are integers, so that it is the same to round first; and those that are
        # the type's own cost nothing behind it.  Sums are far below 2^21 (`RANGE` and
        # `FARTHEST` of graph/integer_sums.py).
        whole = nearest_integer(total)
        whole = whole.maximum(least) if least > limits.min else whole
        whole = whole.minimum(most) if most < limits.max else whole
        return packed(whole, dtype)

    return combine(b, body, x.shape, dtype, x, y)


OPERATORS = {"nanoloom.integer.Sum": byte_sum}
