"""sqrt, rsqrt, cbrt and powf."""

from __future__ import annotations

import math
from collections.abc import Callable

from nanoloom.ir.mlir import ir
from nanoloom.vector.math.exp import EXP2_ROUNDER, exp2_parts
from nanoloom.vector.math.lanes import (
    Lanes,
    at_least,
    at_most,
    copysign,
    fma,
    horner,
    select,
)

SMALLEST_NORMAL = 2.0**-126
# bits(x^(-1/3)) ~ this - bits(x) / 3, within 3.5 %: of all multiples of 2^14 the one of
# the smallest error after the step of fourth order, 2^-15.9.
INVERSE_CUBE_ROOT_BITS = 0x54A20000
# log2(1 + f) / f on |f| <= 1/3 in f64, minimax for the relative error, 2^-35.9
# (Lawson's weighted least squares on 800 Chebyshev nodes, function values of 120 bits):
# times the largest exponent, 150, that is 2^-28.7 of the power.
LOG2 = (
    1.4426950408923298,
    -0.7213475195693049,
    0.4808983439619734,
    -0.36067397861607986,
    0.28853944169759566,
    -0.24043366037794597,
    0.20607597478480286,
    -0.18080606438269792,
    0.16089120592705977,
    -0.1374610991517092,
    0.1235629838800201,
    -0.16610528534444513,
    0.15754125872823813,
)
ONE_BITS = 0x3FF0000000000000
TWO_THIRDS_BITS = 0x3FE5555555555555
EXPONENT_MASK = -0x10000000000000  # sign and exponent of an f64
TWO_TO_52_BITS = 0x4330000000000000


def sqrt(x: ir.Value) -> ir.Value:
    """Correctly rounded square root: an instruction of every target."""
    return Lanes(x).sqrt().value


def rsqrt(x: ir.Value) -> ir.Value:
    """1 / sqrt(x) for f32 or a vector of f32."""
    return (1.0 / Lanes(x).sqrt()).value


def cbrt(x: ir.Value) -> ir.Value:
    """Cube root for f32 or a vector of f32, without a division.

    A guess of x^(-1/3) from the bits, one step of fourth order (error 2^-15.9), then
    one Newton step on the cube root itself.
    """
    lanes = Lanes(x)
    size = abs(lanes)
    denormal = size < SMALLEST_NORMAL
    a = select(denormal, size * 2.0**24, size)
    third = (a.bits().to_float() * (1 / 3)).to_int()
    y = (third.splat(INVERSE_CUBE_ROOT_BITS) - third).as_float()
    gap = fma(-(a * y), y * y, 1.0)
    y = fma(y * gap, fma(gap, fma(gap, 14 / 81, 2 / 9), 1 / 3), y)
    square = y * y
    root = a * square
    root = fma(fma(-(root * root), root, a), square * (1 / 3), root)
    root = select(denormal, root * 2.0**-8, root)
    # inf * 0 above is NaN: inf and NaN pass here.
    return copysign(select(size < math.inf, root, size), lanes).value


def _log2_wide(size: Lanes) -> Lanes:
    """log2 of an f32 >= 0 in f64 to 2^-35 of itself; denormals are normal there."""
    bits = size.widen().bits()
    biased = bits + (ONE_BITS - TWO_THIRDS_BITS)
    # The exponent as the low bits of 2^52: a conversion without an i64 to f64.
    exponent = (biased.shift_right_logical(52) | TWO_TO_52_BITS).as_float()
    exponent = exponent - (2.0**52 + 1023)
    f = (bits - ((biased & EXPONENT_MASK) - ONE_BITS)).as_float() - 1.0
    result = fma(f, horner(f, LOG2), exponent)
    result = select(size.equals(0.0), -math.inf, result)
    return select(size.equals(math.inf), math.inf, result)


def _power_of_size(size: Lanes, y: Lanes) -> Lanes:
    """size^y for size >= 0: 2^(y log2 size), the product in f64."""
    product = y.widen() * _log2_wide(size)
    product = at_least(at_most(product, 130.0), -152.0)
    rounded = product.narrow() + EXP2_ROUNDER
    rest = product - (rounded - EXP2_ROUNDER).widen()
    return exp2_parts(rounded, rest.narrow())


def _root(base: Lanes) -> Lanes:
    """base^(1/2): unlike the square root, +0 for -0 and inf for -inf."""
    return select(base.equals(-math.inf), math.inf, base.sqrt() + 0.0)


# Exponents that models write as constants, with the same special cases as any other.
# Not -2, where x^2 overflows before x^-2 is 0, nor 4 with its third rounding.
BY_EXPONENT: dict[float, Callable[[Lanes], Lanes]] = {
    -1.0: lambda base: 1.0 / base,
    -0.5: lambda base: 1.0 / _root(base),
    0.0: lambda base: base.splat(1.0),
    0.5: _root,
    1.0: lambda base: base,
    2.0: lambda base: base * base,
    3.0: lambda base: base * base * base,
}


def powf(x: ir.Value, y: ir.Value) -> ir.Value:
    """x^y for f32 or vectors of f32, with the special cases of IEEE 754's pow.

    A constant y of `BY_EXPONENT` costs a multiplication or two.
    """
    base, power = Lanes(x), Lanes(y)
    exponent = power.constant()
    if exponent in BY_EXPONENT:
        return BY_EXPONENT[exponent](base).value
    return _general_power(base, power).value


def _general_power(base: Lanes, power: Lanes) -> Lanes:
    size = abs(base)
    result = _power_of_size(size, power)
    # |x| = 1 with y = inf: inf * 0 is NaN above.
    result = select(size.equals(1.0), 1.0, result)
    integer = power.round().equals(power)
    half = power * 0.5
    odd = integer.and_not(half.round().equals(half))
    result = select(odd, copysign(result, base), result)
    negative = (base < 0.0) & (base > -math.inf)
    result = select(negative.and_not(integer), math.nan, result)
    result = select(base.is_nan() | power.is_nan(), math.nan, result)
    return select(base.equals(1.0) | power.equals(0.0), 1.0, result)
