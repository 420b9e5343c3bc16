"""Polynomials in f64, and how the functions here are made for every float type.

All coefficients of this folder are those of the Chebyshev interpolant of a function, of
60 digits, in powers of t on -1 <= t <= 1, rounded to f64; the error stated beside them
is the largest of 200 points, relative to the function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nanoloom.linalg.builder.scalar import Scalar, constant

FLOAT64 = np.dtype(np.float64)
Formula = Callable[..., Scalar]


def horner(t: Scalar, coefficients: Sequence[float]) -> Scalar:
    """c[0] + c[1] t + c[2] t^2 + ..., one fma for each coefficient after the last."""
    *lower, highest = coefficients
    total = constant(highest, t.dtype)
    for each in reversed(lower):
        total = total.math("fma", t, each)
    return total


def in_double(formula: Formula) -> Formula:
    """The formula, which computes in f64, for every float type: rounded once."""
    return lambda x, *said: formula(x.cast(FLOAT64), *said).cast(x.dtype)
