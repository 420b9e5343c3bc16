"""exp, exp2, expm1 as polynomials.

exp(x) = 2^k * exp(r): k is taken by adding a number so large that only the integer part
of the sum survives, and 2^k is made from the sum's own bits, so that no conversion
between floats and integers is needed.  The coefficients are minimax (Lawson's weighted
least squares on 600 Chebyshev nodes, with function values of 120 bits), rounded to f32
one at a time from the lowest, the rest fitted again after each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from nanoloom.ir.mlir import ir
from nanoloom.vector.math.lanes import (
    Lanes,
    at_least,
    at_most,
    estrin,
    fma,
    horner,
    select,
)

# Halving the sum's bits leaves one bias of 127 in each half.
EXP2_ROUNDER = 1.5 * 2.0**23 + 254
LOG2_E = 1 / math.log(2)


@dataclass(frozen=True)
class Exponential:
    """What exp is made of in a format.

    ln2: as the sum of two numbers.  narrow: (exp(r) - 1 - r) / r^2 on |r| <= ln 2 / 2.
    infinite: from here on the result is inf.  zero: 2^k is 0 in both halves.
    unscaled: 2^k has the exponent of zero.  rounded_off: exp(x) - 1 is -1 below.
    """

    ln2: tuple[float, float]
    narrow: tuple[float, ...]
    infinite: float
    zero: float
    unscaled: float
    rounded_off: float


OF_WIDTH = {
    32: Exponential(
        ln2=(float.fromhex("0x1.62e43p-1"), float.fromhex("-0x1.05c61p-29")),
        # Error 2^-26.1 of exp(r) - 1:
        narrow=(
            0.4999999701976776,
            0.1666654646396637,
            0.04166744649410248,
            0.008366251364350319,
            0.0013869587564840913,
        ),
        infinite=89.0,
        zero=-176.0,
        unscaled=-88.0,
        rounded_off=-17.5,
    ),
    64: Exponential(
        ln2=(
            float.fromhex("0x1.62e42fefa39efp-1"),
            float.fromhex("0x1.abc9e3b39803fp-56"),
        ),
        # Error 2^-55.5 of exp(r) - 1:
        narrow=(
            0.5000000000000006,
            0.16666666666666607,
            0.041666666666573884,
            0.008333333333377957,
            0.001388888893226678,
            0.00019841269744065896,
            2.480150459103823e-05,
            2.755738520084577e-06,
            2.7626268032854904e-07,
            2.5060832229895893e-08,
        ),
        infinite=710.0,
        zero=-1418.0,
        unscaled=-709.2,
        rounded_off=-38.0,
    ),
}

# (2^r - 1) / r on |r| <= 1/2, error 2^-28.3 of 2^r:
EXP2_NARROW = (
    0.6931471824645996,
    0.24022647738456726,
    0.05550359934568405,
    0.009618505835533142,
    0.0013390806270763278,
    0.0001532646274426952,
)


Scaled = Callable[[Lanes, Lanes], Lanes]


@dataclass(frozen=True)
class Power:
    """exp of something = (1 + tail) * scale, `scale` a power of two."""

    tail: Lanes
    scale: Lanes


def facts(x: Lanes) -> Exponential:
    return OF_WIDTH[x.width]


def _tail(r: Lanes) -> Lanes:
    """exp(r) - 1, exactly r where r^2 vanishes."""
    square = r * r
    return fma(square, estrin(r, square, facts(r).narrow), r)


def _scale(rounded: Lanes) -> Lanes:
    return (rounded.bits() << rounded.format.fraction).as_float()


def power(
    x: Lanes, factor: float = 1.0, *, halvings: int = 0, low: Lanes | None = None
) -> Power:
    """exp(factor x) = (1 + tail) * scale, for |factor x| <= 87 (708); factor 1 or -2.

    halvings: scale * 2^-halvings is given, which reaches as much further up, or down
    where it is negative.  low: added to x, less than x's last place.
    """
    # The bias in the low bits of the sum: shifted to the exponent's place it is 2^k.
    rounder = x.format.rounder + x.format.bias - halvings
    rounded = fma(x, LOG2_E * factor, rounder)
    k = rounded - rounder
    high, low_half = facts(x).ln2
    r = fma(k, -low_half / factor, fma(k, -high / factor, x))
    if low is not None:
        r = r + low
    if factor != 1.0:
        r = -(r + r)  # beside multiply-adds, which take the sign along
    return Power(_tail(r), _scale(rounded))


def exp_of(x: Lanes, scaled: Scaled | None = None) -> Lanes:
    """exp(x): 19 instructions, 15 with one for `scaled`; overflow is inf, underflow
    gradual, NaN passes.

    scaled: a number times 2^k, rounded once; multiplying twice gives the same.
    """
    # The result is 0 below -104.  A product that underflows to it takes some x86 CPUs
    # a hundred cycles; down at -176 it is 0 times 0.  (f64: -746 and -1418.)
    x = at_least(at_most(x, facts(x).infinite), facts(x).zero)
    rounder = x.format.rounder + x.format.bias * (1 if scaled else 2)
    rounded = fma(x, LOG2_E, rounder)
    k = rounded - rounder
    high, low = facts(x).ln2
    tail = _tail(fma(k, -low, fma(k, -high, x)))
    if scaled:
        return scaled(tail + 1.0, k)
    return exp2_product(tail, rounded)


def exp(x: ir.Value) -> ir.Value:
    """exp(x) for f32, f64 or a vector of them."""
    return exp_of(Lanes(x)).value


def exp_nonpositive(x: ir.Value) -> ir.Value:
    """exp(x) for f32, f64 or a vector of them, x <= 0 or NaN: 13 instructions in f32.

    Exactly 0 below -87.68 (-708.74), where 2^k has the exponent of zero.
    """
    lanes = Lanes(x)
    # In front, so that no register holds x up to the end; so -inf is 0 times a number.
    part = power(at_least(lanes, facts(lanes).unscaled))
    return fma(part.tail, part.scale, part.scale).value


def exp2_product(tail: Lanes, rounded: Lanes) -> Lanes:
    """(1 + tail) * 2^k, k + twice the bias in the low bits of `rounded`; any result.

    2^k is 2^floor(k/2) * 2^ceil(k/2), two numbers that never leave the format's range.
    """
    bits, place = rounded.bits(), rounded.format.fraction
    half = bits.shift_right_logical(1)
    first, second = (half << place).as_float(), ((bits - half) << place).as_float()
    return fma(tail, first, first) * second


def exp2_parts(rounded: Lanes, rest: Lanes) -> Lanes:
    """2^(k + rest), k = rounded - EXP2_ROUNDER an integer, |rest| <= 1/2."""
    return exp2_product(rest * horner(rest, EXP2_NARROW), rounded)


def exp2_of(x: Lanes) -> Lanes:
    """2^x, exact for integers."""
    x = at_least(at_most(x, 129.0), -151.0)
    rounded = x + EXP2_ROUNDER
    return exp2_parts(rounded, x - (rounded - EXP2_ROUNDER))


def exp2(x: ir.Value) -> ir.Value:
    """2^x for f32 or a vector of f32."""
    return exp2_of(Lanes(x)).value


def expm1_of(x: Lanes) -> Lanes:
    """exp(x) - 1 = tail * 2^k + (2^k - 1); halved inside, since 2^128 is no f32."""
    # Below -17.5 (-38) the result is -1, and 2^k must not underflow.
    known = facts(x)
    part = power(at_least(at_most(x, known.infinite), known.rounded_off), halvings=1)
    doubled = fma(part.tail, part.scale, part.scale - 0.5) * 2.0
    # tail * 2^-1 would lose the last bit of a denormal; also keeps the sign of zero.
    tiny = abs(x) < 2.0 ** -(x.format.fraction + 2)
    return select(tiny, x, doubled)


def expm1(x: ir.Value) -> ir.Value:
    """exp(x) - 1 for f32, f64 or a vector of them."""
    return expm1_of(Lanes(x)).value
