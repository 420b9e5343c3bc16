"""tanh and sigmoid: one division each.

A division of 16 lanes takes about as long as twenty multiply-adds but runs beside
them, so one division is nearly free next to an exponential and two would not be.
"""

from __future__ import annotations

import math

from nanoloom.ir.mlir import ir
from nanoloom.vector.math.exp import facts, power
from nanoloom.vector.math.lanes import (
    Lanes,
    at_least,
    at_most,
    copysign,
    estrin,
    fma,
    select,
)

LN2 = math.log(2)


def tanh(x: ir.Value) -> ir.Value:
    """tanh(x) = (1 - e) / (1 + e), e = exp(-2 |x|), for f32, f64 or a vector of them.

    e is 2^k (1 + tail), |x| = r - k ln 2 / 2: one product with ln 2 is enough, for e
    gets small before k is large.
    """
    lanes = Lanes(x)
    known, kind = facts(lanes), lanes.format
    # From 9.02 (19.07) on the result rounds to 1.
    size = at_most(abs(lanes), 0.5 * (1.0 - known.rounded_off))
    rounder = kind.rounder + kind.bias
    rounded = fma(size, -2 / LN2, rounder)
    r = fma(rounded - rounder, LN2 / 2, size)
    # exp(-2 r) - 1 in r: powers of two are exact factors.
    narrow = [4 * c * (-2) ** n for n, c in enumerate(known.narrow)]
    square = r * r
    tail = fma(square, estrin(r, square, narrow), r * -2.0)
    scale = (rounded.bits() << kind.fraction).as_float()
    # Two multiply-adds: 2 + (e - 1) would round e's error in twice.
    less = fma(tail, scale, scale - 1.0)
    more = fma(tail, scale, scale + 1.0)
    return copysign(less / more, lanes).value


def sigmoid(x: ir.Value) -> ir.Value:
    """1 / (1 + exp(-x)) for f32, f64 or a vector of them.

    Below -89 exactly 0 instead of a denormal under 2^-128.
    """
    lanes = -Lanes(x)
    # Below -17.5 (-38) 1 + exp(x) rounds to 1.  89.5 (710.5): a power of exactly 2^129
    # (2^1025), halved inf.
    known = facts(lanes)
    low = at_least(lanes, known.rounded_off)
    lanes = select(lanes > known.infinite, known.infinite + 0.5, low)
    part = power(lanes, halvings=1)
    return (0.5 / fma(part.tail, part.scale, part.scale + 0.5)).value
