"""asin, acos, atan, atan2: one polynomial each after an exact change of argument.

Coefficients: minimax for the relative error (Lawson's weighted least squares on
500 Chebyshev nodes, function values of 120 bits), rounded to f32 one at a time from the
lowest, the rest fitted again after each.
"""

from __future__ import annotations

from nanoloom.ir.mlir import ir
from nanoloom.vector.math.lanes import Lanes, copysign, fma, horner, select

HALF_PI = float.fromhex("0x1.921fb6p+0")  # f32
HALF_PI_LOW = float.fromhex("-0x1.777a5cp-25")  # what f32 leaves of pi/2
LOW_PER_HIGH = HALF_PI_LOW / HALF_PI

# (asin(s) - s) / s^3 in s^2 on 0 <= s <= 0.55, error 2^-29.5:
ASIN = (
    0.1666664034128189,
    0.07501626759767532,
    0.04431098699569702,
    0.03344360738992691,
    0.008576134219765663,
    0.045297108590602875,
)
# (atan(t) - t) / t^3 in t^2 on 0 <= t <= 1, error 2^-28.5:
ATAN = (
    -0.33333298563957214,
    0.1999852955341339,
    -0.14264015853405,
    0.10950878262519836,
    -0.08399287611246109,
    0.05788078159093857,
    -0.031096020713448524,
    0.01086793839931488,
    -0.001782595063559711,
)


def _asin_near(s: Lanes, square: Lanes) -> Lanes:
    return fma(s * square, horner(square, ASIN), s)


def _asin_parts(size: Lanes) -> tuple[Lanes, Lanes]:
    """(mask far, asin(s)): s = |x|, or sqrt((1 - |x|) / 2) where |x| > 0.55.

    There asin |x| = pi/2 - 2 asin(s); beyond 1 the square root makes NaN.  At 0.55
    asin(s) is below 1/2, and its rounding half of what it is above.
    """
    far = size > 0.55
    square = select(far, (1.0 - size) * 0.5, size * size)
    return far, _asin_near(select(far, square.sqrt(), size), square)


def asin(x: ir.Value) -> ir.Value:
    """asin(x) for f32 or a vector of f32; NaN outside of [-1, 1]."""
    lanes = Lanes(x)
    far, angle = _asin_parts(abs(lanes))
    result = select(far, HALF_PI - fma(angle, 2.0, -HALF_PI_LOW), angle)
    return copysign(result, lanes).value


def acos(x: ir.Value) -> ir.Value:
    """acos(x) for f32 or a vector of f32; NaN outside of [-1, 1]."""
    lanes = Lanes(x)
    far, angle = _asin_parts(abs(lanes))
    negative = lanes < 0.0
    beyond = 2 * HALF_PI - fma(angle, 2.0, -2 * HALF_PI_LOW)
    wide = select(negative, beyond, angle * 2.0)
    near = HALF_PI - (copysign(angle, lanes) - HALF_PI_LOW)
    return select(far, wide, near).value


def _atan_near(t: Lanes) -> Lanes:
    """atan on 0 <= t <= 1."""
    square = t * t
    return fma(t * square, horner(square, ATAN), t)


def _from_axis(axis: Lanes, angle: Lanes) -> Lanes:
    """axis + angle, with what f32 leaves of the axis (0, pi/2 or pi) added in."""
    return axis + fma(axis, LOW_PER_HIGH, angle)


def atan(x: ir.Value) -> ir.Value:
    """atan(x) for f32 or a vector of f32."""
    lanes = Lanes(x)
    size = abs(lanes)
    steep = size > 1.0
    angle = _atan_near(select(steep, 1.0 / size, size))
    result = select(steep, HALF_PI - (angle - HALF_PI_LOW), angle)
    return copysign(result, lanes).value


def atan2(y: ir.Value, x: ir.Value) -> ir.Value:
    """The angle of the point (x, y), with IEEE's zeros and infinities."""
    rise, run = Lanes(y), Lanes(x)
    height, width = abs(rise), abs(run)
    steep = height > width
    longer, shorter = select(steep, height, width), select(steep, width, height)
    # 0/0 and inf/inf: the angle of an axis and of a diagonal.  False on NaN.
    same = longer.equals(shorter)
    diagonal = select(longer.equals(0.0), 0.0, longer.splat(1.0))
    angle = _atan_near(select(same, diagonal, shorter / longer))
    left = run.bits() < 0  # -0 as well
    axis = select(left, 2 * HALF_PI, run.splat(0.0))
    axis = select(steep, HALF_PI, axis)
    angle = select(steep ^ left, -angle, angle)
    return copysign(_from_axis(axis, angle), rise).value
