"""tanh and sigmoid: one exponential and one division each.

A division of 16 lanes takes about as long as twenty multiply-adds but runs beside
them, so one division is nearly free next to an exponential and two would not be.
"""

from __future__ import annotations

from nanoloom.ir.mlir import ir
from nanoloom.vector.math.exp import power
from nanoloom.vector.math.lanes import (
    Lanes,
    at_least,
    at_most,
    copysign,
    fma,
    select,
)


def tanh(x: ir.Value) -> ir.Value:
    """tanh(x) = (1 - e) / (1 + e), e = exp(-2 |x|), for f32 or a vector of f32."""
    lanes = Lanes(x)
    # From 9.02 on the result rounds to 1.
    part = power(at_most(abs(lanes), 9.1), -2.0)
    # Two multiply-adds: 2 + (e - 1) would round e's error in twice.
    less = fma(part.tail, part.scale, part.scale - 1.0)
    more = fma(part.tail, part.scale, part.scale + 1.0)
    return copysign(less / more, lanes).value


def sigmoid(x: ir.Value) -> ir.Value:
    """1 / (1 + exp(-x)) for f32 or a vector of f32.

    Below -89 exactly 0 instead of a denormal under 2^-128.
    """
    lanes = -Lanes(x)
    # 18: 1 + exp(-18) rounds to 1.  89.5: a power of exactly 2^129, halved inf.
    lanes = select(lanes > 89.0, 89.5, at_least(lanes, -18.0))
    part = power(lanes, halvings=1)
    return (0.5 / fma(part.tail, part.scale, part.scale + 0.5)).value
