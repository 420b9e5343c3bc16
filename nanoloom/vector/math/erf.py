"""erf without a division or an exponential, and erfc.

Coefficients: minimax by Lawson's weighted least squares on 500 to 1000 Chebyshev nodes,
function values of 120 bits, rounded to f32 one at a time from the lowest, the rest
fitted again after each.
"""

from __future__ import annotations

from nanoloom.ir.mlir import ir
from nanoloom.vector.math.exp import power
from nanoloom.vector.math.lanes import Lanes, at_most, copysign, fma, horner, select

# (erf(x) - x) / x in x^2 on |x| <= 1.1, error 2^-27.6 of erf:
ERF_NEAR = (
    0.12837916612625122,
    -0.37612611055374146,
    0.11283364146947861,
    -0.026843518018722534,
    0.005167731083929539,
    -0.0007824739441275597,
    7.236068631755188e-05,
)
# erfc(x)^(1/4) on 1.1 <= x <= 3.93, error 2^-26.4 of erf:
ERFC_ROOT = (
    1.0051738023757935,
    -0.3074944019317627,
    -0.06558547168970108,
    -0.04851223900914192,
    0.06506837904453278,
    -0.02188187837600708,
    0.003177458653226495,
    -0.00017542378918733448,
)
# exp(x^2) erfc(x) (x + 3) in (x - 3) / (x + 3) on 0 <= x <= 10.1, error 2^-26.9:
ERFC_SCALED = (
    1.0740069150924683,
    -0.8833944797515869,
    0.5902278423309326,
    -0.31046611070632935,
    0.11953383684158325,
    -0.026838066056370735,
    -0.0012424405431374907,
    0.0030710725113749504,
    -0.0004665988963097334,
    -0.0003128398675471544,
)
MIDDLE = 3.0


def erf(x: ir.Value) -> ir.Value:
    """erf(x) for f32 or a vector of f32: 22 instructions.

    The fourth root of erfc is so smooth that a polynomial of degree 7 reaches it from
    1.1 to where erf rounds to 1 (at 4 too); squaring twice brings erfc back.
    """
    lanes = Lanes(x)
    size = abs(lanes)
    root = horner(at_most(size, 4.0), ERFC_ROOT)
    square = root * root
    far = copysign(fma(-square, square, 1.0), lanes)
    near = fma(lanes, horner(lanes * lanes, ERF_NEAR), lanes)
    return select(size < 1.1, near, far).value


def erfc(x: ir.Value) -> ir.Value:
    """1 - erf(x) with small relative error, for f32 or a vector of f32."""
    lanes = Lanes(x)
    size = at_most(abs(lanes), 10.1)
    square = size * size
    rest = fma(size, size, -square)  # exact: x^2 = square + rest
    # 2^40 times too much until the end: exp(-10.1^2) is no normal number.
    part = power(-square, halvings=-40, low=-rest)
    below, above = size - MIDDLE, size + MIDDLE
    inverse = 1.0 / above
    t = below * inverse
    t = fma(fma(-t, above, below), inverse, t)  # rounds the quotient only once
    scaled = horner(t, ERFC_SCALED) * inverse
    far = fma(part.tail, scaled, scaled) * part.scale * 2.0**-40
    far = select(lanes < 0.0, 2.0 - far, far)
    # 1 - x is exact above 1/2, so that near 0 little is rounded but the result.
    near = fma(-lanes, horner(lanes * lanes, ERF_NEAR), 1.0 - lanes)
    return select(abs(lanes) < 1.0, near, far).value
