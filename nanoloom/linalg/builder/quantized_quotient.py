"""x / s rounded to an integer, for a known s, without a division.

    near = x y                     y: 1 / s, rounded
    rest = x - near s              one rounding (fma)
    quotient = near + rest y       one rounding (fma)

A vector division takes ten times as long.  QuantizeLinear rounds twice: x / s to f32,
then to an integer.  `is_safe` says for which s both come out the same for every x.
"""

from __future__ import annotations

import numpy as np

from nanoloom.linalg.builder.scalar import Scalar, constant, select

FLOAT32, INT32 = np.dtype(np.float32), np.dtype(np.int32)
MOST = 512  # what 8 bits hold, less a zero point
ERROR = 2.0**-45
RANGE = 2.0**-90, 2.0**90  # nothing overflows or is denormal
SHIFT = 1.5 * 2**23  # f32 of this size are integers: an addition rounds to one


def is_exact(by: float) -> bool:
    """Whether the quotients of all x up to MOST are rounded to the same integers.

    `near` is off by 2^-23 of x / s, and near + rest y by that times |1 - s y| + 2^-24:
    by less than ERROR of x / s, before it is rounded to f32.  Which integer follows
    depends only on whether the f32 is above, at or below k + 1/2, so on which side of
    the middle m between k + 1/2 and its neighbours x / s lies.  For each m the x next
    to m s must be so far from it that ERROR cannot matter; m s is exact in f64.
    """
    if not RANGE[0] < by < RANGE[1]:
        return False
    ties = np.arange(MOST, dtype=np.float32) + np.float32(0.5)
    sides = [np.nextafter(ties, np.float32(end)) for end in (0, np.inf)]
    middles = np.concatenate([(ties + s.astype(np.float64)) / 2 for s in sides])
    exact = middles * by
    nearest = exact.astype(np.float32).astype(np.float64)
    return bool((abs(nearest - exact) > ERROR * exact).all())


def quantized_quotient(x: Scalar, by: float, start: int, dtype: np.dtype) -> Scalar:
    """saturate(round(x / by) + start) in 8 bits; NaN gives the least.

    x: f32.  by: an f32 that `is_safe`.  start: a number of the type.
    """
    limits = np.iinfo(dtype)
    ends = int(limits.min) - start, int(limits.max) - start
    least, largest = (constant(by * end, FLOAT32) for end in ends)
    above = select(x > least, x, least)
    inside = select(above < largest, above, largest)
    inverse = constant(float(np.float32(1) / np.float32(by)), FLOAT32)
    near = inside * inverse
    rest = (-near).math("fma", constant(by, FLOAT32), inside)
    quotient = rest.math("fma", inverse, near)
    odd = start % 2  # added later: it would turn ties to odd numbers
    whole = (quotient + (SHIFT + start - odd)).bitcast(INT32)
    # The last bits are the integer's: what is inside needs no other limit.
    return (whole + odd if odd else whole).cast(dtype)
