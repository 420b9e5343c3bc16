"""Comparisons, logic on bool, bits of integers, and the choice between two values."""

from __future__ import annotations

import numpy as np

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, constant, is_unsigned, select
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.elementwise.arithmetic import Lower, simple


def is_inf(b: Builder, node: Node) -> Tensor:
    """detect_positive and detect_negative choose the infinities that count."""
    limits = [
        limit
        for name, limit in (("detect_positive", np.inf), ("detect_negative", -np.inf))
        if node.int(name, 1)
    ]

    def body(x: Scalar) -> Scalar:
        found = constant(False, np.dtype(np.bool_))
        for limit in limits:
            found = found | x.equal(limit)
        return found

    return b.elementwise(body, node.input(0), dtype=node.output_dtypes[0])


def bit_shift(b: Builder, node: Node) -> Tensor:
    """A shift by 0 .. width - 1; any other amount leaves only copies of the sign."""
    right = node.string("direction") == "RIGHT"

    def body(x: Scalar, amount: Scalar) -> Scalar:
        width = x.dtype.itemsize * 8
        inside = amount < width
        if not is_unsigned(x.dtype):
            inside = inside & (amount >= 0)
        safe = select(inside, amount, 0)
        shifted = x >> safe if right else x << safe
        fill = constant(0, x.dtype)
        if right and not is_unsigned(x.dtype):
            fill = x >> (width - 1)
        return select(inside, shifted, fill)

    return b.elementwise(body, node.input(0), node.input(1))


OPERATORS: dict[str, Lower] = {
    "And": simple(lambda x, y: x & y),
    "BitShift": bit_shift,
    "BitwiseAnd": simple(lambda x, y: x & y),
    "BitwiseNot": simple(lambda x: ~x),
    "BitwiseOr": simple(lambda x, y: x | y),
    "BitwiseXor": simple(lambda x, y: x ^ y),
    "Equal": simple(lambda x, y: x.equal(y)),
    "Greater": simple(lambda x, y: x > y),
    "GreaterOrEqual": simple(lambda x, y: x >= y),
    "IsInf": is_inf,
    "IsNaN": simple(lambda x: x.is_nan()),
    "Less": simple(lambda x, y: x < y),
    "LessOrEqual": simple(lambda x, y: x <= y),
    "Not": simple(lambda x: ~x),
    "Or": simple(lambda x, y: x | y),
    "Where": simple(select),
    "Xor": simple(lambda x, y: x ^ y),
}
