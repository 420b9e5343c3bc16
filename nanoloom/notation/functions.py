"""The functions that expressions are written with; operators are in `expression.py`.

Arguments are expressions of one element type; where there are two, one may be a number.
"""

from __future__ import annotations

from nanoloom.notation.expression import Expression, Given, apply


def maximum(x: Given, y: Given) -> Expression:
    """The larger one; NaN if either is NaN."""
    return apply("maximum", x, y)


def minimum(x: Given, y: Given) -> Expression:
    """The smaller one; NaN if either is NaN."""
    return apply("minimum", x, y)


def power(x: Given, y: Given) -> Expression:
    """x to the power of y."""
    return apply("power", x, y)


def absolute(x: Expression) -> Expression:
    """Without the sign; the lowest integer stays as it is."""
    return apply("absolute", x)


def popcount(x: Expression) -> Expression:
    """How many bits of an integer are 1, in its own type."""
    return apply("popcount", x)


def exp(x: Expression) -> Expression:
    """e to the power of x."""
    return apply("exp", x)


def log(x: Expression) -> Expression:
    """The natural logarithm."""
    return apply("log", x)


def sqrt(x: Expression) -> Expression:
    """The square root."""
    return apply("sqrt", x)


def rsqrt(x: Expression) -> Expression:
    """1 / sqrt(x)."""
    return apply("rsqrt", x)


def sin(x: Expression) -> Expression:
    """Of radians."""
    return apply("sin", x)


def cos(x: Expression) -> Expression:
    """Of radians."""
    return apply("cos", x)


def tanh(x: Expression) -> Expression:
    """The hyperbolic tangent."""
    return apply("tanh", x)


def erf(x: Expression) -> Expression:
    """The error function of Gauss."""
    return apply("erf", x)


def floor(x: Expression) -> Expression:
    """The nearest integer that is not larger."""
    return apply("floor", x)


def ceil(x: Expression) -> Expression:
    """The nearest integer that is not smaller."""
    return apply("ceil", x)


def round(x: Expression) -> Expression:
    """The nearest integer, the even one of two."""
    return apply("round", x)
