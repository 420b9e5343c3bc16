"""Integer division, remainder and power that no value of the operands can stop.

Hardware traps at x / 0 and at the lowest integer / -1: both are selected away.  As in
numpy, x / 0 and x % 0 are 0, and what does not fit wraps around.
"""

from __future__ import annotations

from nanoloom.ir.mlir import arith, ir, scf
from nanoloom.linalg.builder.scalar import (
    Scalar,
    constant,
    is_float,
    is_unsigned,
    select,
)


def harmless(y: Scalar) -> Scalar:
    """The divisor where dividing by it cannot trap, else 1."""
    trap = y.equal(0)
    if not is_unsigned(y.dtype):
        trap = trap | y.equal(-1)
    return select(trap, constant(1, y.dtype), y)


def quotient(x: Scalar, y: Scalar) -> Scalar:
    """x / y; integers towards zero."""
    if is_float(x.dtype):
        return x / y
    whole = select(y.equal(0), constant(0, x.dtype), x / harmless(y))
    if is_unsigned(x.dtype):
        return whole
    return select(y.equal(-1), -x, whole)


def remainder(x: Scalar, y: Scalar) -> Scalar:
    """C's x % y for integers: the sign of the dividend (dividing by 1 leaves 0)."""
    return x.remainder(harmless(y))


def integer_power(x: Scalar, exponent: Scalar) -> Scalar:
    """x ** exponent by squaring, wrapping; x ** -n is 0 unless x is 1 or -1."""
    count = constant(exponent.dtype.itemsize * 8, exponent.dtype).index()
    zero, one = (arith.constant(ir.IndexType.get(), n) for n in (0, 1))
    loop = scf.ForOp(
        zero, count, one, [constant(1, x.dtype).value, x.value, exponent.value]
    )
    with ir.InsertionPoint(loop.body):
        result, base, rest = (
            Scalar(value, kind.dtype)
            for value, kind in zip(loop.inner_iter_args, (x, x, exponent), strict=True)
        )
        odd = (rest & 1).differs(0)
        left = exponent_half(rest)
        scf.YieldOp(
            [select(odd, result * base, result).value, (base * base).value, left.value]
        )
    power = Scalar(loop.results[0], x.dtype)
    if is_unsigned(exponent.dtype):
        return power
    return select(exponent < 0, reciprocal_power(x, exponent), power)


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
