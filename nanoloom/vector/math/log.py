"""log, log1p, log2, log10 as polynomials.

x = 2^e * (1 + f) with 1 + f in [2/3, 4/3), so that f = x - 1 exactly where the
logarithm is near 0, and log(x) = e ln 2 + f + f^2 P(f) without a division.  The
coefficients are minimax for the error relative to log(1 + f): Lawson's weighted least
squares on 600 Chebyshev nodes, with function values of 120 bits, rounded to f32 one at
a time from the lowest, the rest fitted again after each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nanoloom.ir.mlir import ir
from nanoloom.vector.math.lanes import (
    Lanes,
    copysign,
    estrin,
    fma,
    horner,
    select,
)

LN2 = math.log(2)

# (log(1 + f) - f) / f^2, relative error 2^-27.7 of log(1 + f):
LOG1P_TAIL_F32 = (
    -0.5,
    0.3333321511745453,
    -0.2499980479478836,
    0.20010435581207275,
    -0.16680221259593964,
    0.14005543291568756,
    -0.12187453359365463,
    0.13985593616962433,
    -0.1287929117679596,
)
# the same for f64, relative error 2^-56.8:
LOG1P_TAIL_F64 = (
    -0.49999999999999956,
    0.3333333333333315,
    -0.25000000000029887,
    0.2000000000007698,
    -0.1666666666083912,
    0.14285714274330621,
    -0.12500000517717086,
    0.11111111952576855,
    -0.09999974830266958,
    0.09090873259663013,
    -0.08334065486642296,
    0.07693250113552755,
    -0.07129592625840672,
    0.06650897857595668,
    -0.06400180394004641,
    0.06049691662713294,
    -0.045338860158769374,
    0.041849742770852516,
    -0.0869667731250466,
    0.08481313421098167,
)
LOG1P_TAIL = {32: LOG1P_TAIL_F32, 64: LOG1P_TAIL_F64}
# for f32 log2(1 + f) and log10(1 + f):
LOG2_TAIL = (
    -0.7213475108146667,
    0.4808967113494873,
    -0.3606715202331543,
    0.28868651390075684,
    -0.24063247442245483,
    0.2020983248949051,
    -0.1759384125471115,
    0.20159517228603363,
    -0.1854483187198639,
)
LOG10_TAIL = (
    -0.21714724600315094,
    0.14476428925991058,
    -0.10857240855693817,
    0.08690537512302399,
    -0.0724499523639679,
    0.060808952897787094,
    -0.052845146507024765,
    0.060810405761003494,
    -0.056222882121801376,
)
LOG2_E_HIGH, LOG2_E_LOW = float.fromhex("0x1.715476p+0"), float.fromhex("0x1.4ae0cp-26")
LOG10_E_HIGH = float.fromhex("0x1.bcb7b2p-2")
LOG10_E_LOW = float.fromhex("-0x1.5b235ep-27")
LOG10_2_HIGH = float.fromhex("0x1.344136p-2")
LOG10_2_LOW = float.fromhex("-0x1.ec10cp-27")


@dataclass(frozen=True)
class Reduced:
    """A number 2^exponent * (1 + f), -1/3 <= f < 1/3, both floats of its type."""

    exponent: Lanes
    f: Lanes


def _reduce(x: Lanes) -> Reduced:
    """Split a positive finite x; a denormal is scaled up first."""
    kind = x.format
    denormal = x < kind.smallest_normal
    bits = select(denormal, x * 2.0**kind.fraction, x).bits()
    offset = bits - kind.bits_of(2 / 3)
    exponent = (offset >> kind.fraction).to_float()
    exponent = select(denormal, exponent - kind.fraction, exponent)
    return Reduced(exponent, (bits - (offset & kind.exponent_mask)).as_float() - 1.0)


def _reduce_1p(x: Lanes) -> Reduced:
    """Split 1 + x for x > -1, without losing the bits of x that 1 + x rounds away.

    The exponent e of the rounded sum serves for both: f = x 2^-e + (2^-e - 1).
    """
    kind = x.format
    offset = (x + 1.0).bits() - kind.bits_of(2 / 3)
    shift = offset & kind.exponent_mask
    exponent = (offset >> kind.fraction).to_float()
    # 4 * 2^-e rather than 2^-e: a normal number for every e, up to 128 (1024).
    scale = (x.bits().splat(kind.bits_of(4.0)) - shift).as_float()
    return Reduced(exponent, (x.bits() - shift).as_float() + fma(scale, 0.25, -1.0))


def _log_of(part: Reduced) -> Lanes:
    """exponent * ln 2 + log(1 + f); exactly f where f^2 vanishes."""
    square = part.f * part.f
    tail = estrin(part.f, square, LOG1P_TAIL[part.f.width])
    near = fma(square, tail, part.f)
    return fma(part.exponent, LN2, near)


def _specials(x: Lanes, result: Lanes, pole: float = 0.0) -> Lanes:
    """-inf at the pole, NaN below it, inf and NaN as they are."""
    result = select(x < math.inf, result, x)
    result = select(x.equals(pole), -math.inf, result)
    return select(x < pole, math.nan, result)


def log_of(x: Lanes) -> Lanes:
    return _specials(x, _log_of(_reduce(x)))


def log(x: ir.Value) -> ir.Value:
    """Natural logarithm for f32, f64 or a vector of them."""
    return log_of(Lanes(x)).value


def log1p_of(x: Lanes) -> Lanes:
    result = copysign(_log_of(_reduce_1p(x)), x)  # -0 stays -0
    return _specials(x, result, pole=-1.0)


def log1p(x: ir.Value) -> ir.Value:
    """log(1 + x) for f32, f64 or a vector of them."""
    return log1p_of(Lanes(x)).value


def log_twice_1p(x: Lanes, twice: Lanes) -> Lanes:
    """log(1 + x), and log 2 more in the lanes of the mask `twice`; x >= 0 or NaN."""
    part = _reduce_1p(x)
    exponent = select(twice, part.exponent + 1.0, part.exponent)
    return select(x < math.inf, _log_of(Reduced(exponent, part.f)), x)


def log2(x: ir.Value) -> ir.Value:
    """Logarithm to base 2 for f32 or a vector of f32; exact at powers of two."""
    lanes = Lanes(x)
    part = _reduce(lanes)
    square = part.f * part.f
    near = fma(square, horner(part.f, LOG2_TAIL), part.f * LOG2_E_LOW)
    near = fma(part.f, LOG2_E_HIGH, near)
    return _specials(lanes, part.exponent + near).value


def log10(x: ir.Value) -> ir.Value:
    """Logarithm to base 10 for f32 or a vector of f32."""
    lanes = Lanes(x)
    part = _reduce(lanes)
    square = part.f * part.f
    near = fma(square, horner(part.f, LOG10_TAIL), part.f * LOG10_E_LOW)
    near = fma(part.f, LOG10_E_HIGH, fma(part.exponent, LOG10_2_LOW, near))
    return _specials(lanes, fma(part.exponent, LOG10_2_HIGH, near)).value
