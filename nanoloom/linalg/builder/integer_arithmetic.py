"""Integer division, remainder and power that no value of the operands can stop.

Hardware traps at x / 0 and at the lowest integer / -1: both are selected away.  As in
numpy, x / 0 and x % 0 are 0, and what does not fit wraps around.
"""

from __future__ import annotations

import numpy as np

from nanoloom.ir.mlir import arith
from nanoloom.linalg.builder.scalar import (
    Scalar,
    constant,
    is_float,
    is_unsigned,
    select,
)

# Floats that hold all integers of so many bytes.
HOLDING = {1: np.dtype(np.float32), 2: np.dtype(np.float32), 4: np.dtype(np.float64)}


def harmless(y: Scalar) -> Scalar:
    """The divisor where dividing by it cannot trap, else 1."""
    trap = y.equal(0)
    if not is_unsigned(y.dtype):
        trap = trap | y.equal(-1)
    return select(trap, constant(1, y.dtype), y)


def quotient(x: Scalar, y: Scalar, *, known: bool = False) -> Scalar:
    """x / y; integers towards zero.  known: y is a constant."""
    if is_float(x.dtype):
        return x / y
    found = whole_quotient(x, harmless(y), known=known)
    whole = select(y.equal(0), constant(0, x.dtype), found)
    if is_unsigned(x.dtype):
        return whole
    return select(y.equal(-1), -x, whole)


def remainder(x: Scalar, y: Scalar, *, known: bool = False) -> Scalar:
    """C's x % y for integers: the sign of the dividend (dividing by 1 leaves 0)."""
    by = harmless(y)
    return x - whole_quotient(x, by, known=known) * by


def whole_quotient(x: Scalar, y: Scalar, *, known: bool) -> Scalar:
    """x / y of integers, y neither 0 nor -1: by floats, as vectors have no other.

    A quotient that is not whole is 1 / y or more from the next whole number, and is
    rounded by less than that where the float holds x.  Of a constant LLVM multiplies.
    """
    wide = HOLDING.get(x.dtype.itemsize)
    if wide is None or known:
        return x / y
    return (x.cast(wide) / y.cast(wide)).cast(x.dtype)


def integer_power(x: Scalar, exponent: Scalar) -> Scalar:
    """x ** exponent by squaring, wrapping; x ** -n is 0 unless x is 1 or -1."""
    steps = min(x.dtype.itemsize, exponent.dtype.itemsize) * 8
    result, base, rest = constant(1, x.dtype), x, exponent
    for _ in range(steps):
        result = select((rest & 1).differs(0), result * base, result)
        base, rest = base * base, exponent_half(rest)
    if exponent.dtype.itemsize > x.dtype.itemsize:  # squared as often as it has bits
        lost = rest.differs(0) & (x & 1).equal(0)
        result = select(lost, constant(0, x.dtype), result)
    if is_unsigned(exponent.dtype):
        return result
    return select(exponent < 0, reciprocal_power(x, exponent), result)


def exponent_half(rest: Scalar) -> Scalar:
    """rest >> 1, without copies of the sign."""
    return Scalar(arith.shrui(rest.value, constant(1, rest.dtype).value), rest.dtype)


def reciprocal_power(x: Scalar, exponent: Scalar) -> Scalar:
    """x ** exponent for a negative exponent, towards zero."""
    one, zero = constant(1, x.dtype), constant(0, x.dtype)
    if is_unsigned(x.dtype):
        return select(x.equal(1), one, zero)
    odd = (exponent & 1).differs(0)
    minus = select(odd, x, one)
    return select(x.equal(1), one, select(x.equal(-1), minus, zero))
