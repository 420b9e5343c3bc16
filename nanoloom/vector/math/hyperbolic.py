"""sinh, cosh, asinh, acosh, atanh: from the exponential and from log(1 + x)."""

from __future__ import annotations

import math

from nanoloom.ir.mlir import ir
from nanoloom.vector.math.exp import facts, power
from nanoloom.vector.math.lanes import Lanes, at_most, copysign, fma, horner, select
from nanoloom.vector.math.log import log1p_of, log_twice_1p

# (sinh(x) - x) / x^3 in x^2 on |x| <= 1, minimax for the relative error, 2^-31.6 and
# 2^-61.7 after rounding (Lawson's weighted least squares on Chebyshev nodes).
SINH = {
    32: (
        0.1666666716337204,
        0.00833331048488617,
        0.00019842895562760532,
        2.7822131869470468e-06,
    ),
    64: (
        0.16666666666666669,
        0.008333333333332924,
        0.00019841269841579403,
        2.75573191123344e-06,
        2.505212998830179e-08,
        1.605674451997803e-10,
        7.773870674209354e-13,
    ),
}
# From here on x^2 + 1 is x^2, and x^2 is still far from overflow.
LARGE = 2.0**60


def _half_exp(size: Lanes) -> Lanes:
    """exp(|x|) / 2, which overflows only where sinh and cosh do."""
    # 89.6 (710.6): a power of 2^129 (2^1025), a quarter of which is in range.
    part = power(at_most(size, facts(size).infinite + 0.6), halvings=2)
    return fma(part.tail, part.scale, part.scale) * 2.0


def sinh(x: ir.Value) -> ir.Value:
    """sinh(x) for f32 or a vector of f32."""
    lanes = Lanes(x)
    size = abs(lanes)
    half = _half_exp(size)
    square = size * size
    near = fma(size * square, horner(square, SINH[lanes.width]), size)
    result = select(size < 1.0, near, half - 0.25 / half)
    return copysign(result, lanes).value


def cosh(x: ir.Value) -> ir.Value:
    """cosh(x) for f32 or a vector of f32."""
    half = _half_exp(abs(Lanes(x)))
    return (half + 0.25 / half).value


def asinh(x: ir.Value) -> ir.Value:
    """asinh(x) = log1p(x + x^2 / (1 + sqrt(1 + x^2))); log(2 x) for large x."""
    lanes = Lanes(x)
    size = abs(lanes)
    large = size > LARGE
    square = size * size
    more = square / (fma(size, size, 1.0).sqrt() + 1.0)
    argument = select(large, size, size + more)
    return copysign(log_twice_1p(argument, large), lanes).value


def acosh(x: ir.Value) -> ir.Value:
    """acosh(x) = log1p(t + sqrt(t^2 + 2 t)), t = x - 1; NaN below 1."""
    lanes = Lanes(x)
    above = lanes - 1.0
    large = above > LARGE
    root = fma(above, above, above + above).sqrt()
    result = log_twice_1p(select(large, above, above + root), large)
    return select(lanes < 1.0, math.nan, result).value


def atanh(x: ir.Value) -> ir.Value:
    """atanh(x) = log1p(2 x / (1 - x)) / 2; NaN outside of [-1, 1]."""
    lanes = Lanes(x)
    size = abs(lanes)
    result = log1p_of((size + size) / (1.0 - size)) * 0.5
    return copysign(result, lanes).value
