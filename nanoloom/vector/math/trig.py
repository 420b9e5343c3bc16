"""sin, cos, tan: the angle is reduced in f64, the polynomial is f32.

With fused multiply-adds and pi/2 as two f64, the remainder of an f32 angle keeps more
than 24 good bits up to 2^45, where an f32 steps by 2^22: one short path serves every
angle a model can mean.  Larger ones give NaN rather than a meaningless number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nanoloom.ir.mlir import ir
from nanoloom.vector.math.lanes import Lanes, fma, horner, select

LARGEST_ANGLE = 2.0**45
ROUNDER = 1.5 * 2.0**52
HALF_PI_HIGH = float.fromhex("0x1.921fb54442d18p+0")
HALF_PI_LOW = float.fromhex("0x1.1a62633145c07p-54")
SIGN_BIT = -0x80000000

# Minimax for the relative error on |r| <= pi/4 (Lawson's weighted least squares on 500
# Chebyshev nodes, function values of 120 bits), rounded to f32 one at a time from the
# lowest, the rest fitted again after each.
# (sin(r) - r) / r^3 in r^2, error 2^-27.9:
SIN = (-0.16666655242443085, 0.008332189172506332, -0.00019518285989761353)
# (cos(r) - 1 + r^2/2) / r^4 in r^2, error 2^-33:
COS = (0.04166664555668831, -0.0013887309469282627, 2.4432327336398885e-05)
# (tan(r) - r) / r^3 in r^2, error 2^-29.6:
TAN = (
    0.33333349227905273,
    0.13332675397396088,
    0.05405890569090843,
    0.02128629758954048,
    0.010827076621353626,
    9.8874130344484e-05,
    0.0043723126873373985,
)


@dataclass(frozen=True)
class Angle:
    """x = quadrant * pi/2 + rest, |rest| <= pi/4; two bits of the quadrant count."""

    quadrant: Lanes
    rest: Lanes


def _reduce(x: Lanes) -> Angle:
    # Ordered: NaN and inf become NaN as well.
    wide = select(abs(x) < LARGEST_ANGLE, x, x.splat(math.nan)).widen()
    rounded = fma(wide, 2 / math.pi, ROUNDER)
    count = rounded - ROUNDER
    rest = fma(count, -HALF_PI_LOW, fma(count, -HALF_PI_HIGH, wide))
    return Angle(rounded.bits().narrow(), rest.narrow())


def _sine(angle: Angle) -> Lanes:
    """sin of a reduced angle: one polynomial by parity, the sign by the second bit."""
    r = angle.rest
    square = r * r
    sine = fma(r * square, horner(square, SIN), r)
    cosine = fma(square * square, horner(square, COS), fma(square, -0.5, 1.0))
    odd = (angle.quadrant & 1).differs(0)
    sign = (angle.quadrant & 2) << 30
    return (select(odd, cosine, sine).bits() ^ sign).as_float()


def sin(x: ir.Value) -> ir.Value:
    """sin(x) for f32 or a vector of f32, |x| < 2^45."""
    lanes = Lanes(x)
    sign = lanes.bits() & SIGN_BIT
    # Of |x|, so that sin(-0) is -0.
    return (_sine(_reduce(abs(lanes))).bits() ^ sign).as_float().value


def cos(x: ir.Value) -> ir.Value:
    """cos(x) for f32 or a vector of f32, |x| < 2^45."""
    angle = _reduce(Lanes(x))
    return _sine(Angle(angle.quadrant + 1, angle.rest)).value


def tan(x: ir.Value) -> ir.Value:
    """tan(x) for f32 or a vector of f32, |x| < 2^45; -1 / tan in odd quadrants."""
    lanes = Lanes(x)
    angle = _reduce(abs(lanes))
    r = angle.rest
    square = r * r
    tangent = fma(r * square, horner(square, TAN), r)
    odd = (angle.quadrant & 1).differs(0)
    result = select(odd, -1.0 / tangent, tangent)
    sign = lanes.bits() & SIGN_BIT
    return (result.bits() ^ sign).as_float().value
