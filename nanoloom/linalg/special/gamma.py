"""The logarithm of the gamma function and its derivatives.

    lgamma(x + 1) = lgamma(x) + log(x)
    psi_n(x + 1)  = psi_n(x) + (-1)^n n! / x^(n + 1)        psi_n = d^(n + 1) lgamma
    psi_n(x)      = (-1)^n psi_n(1 - x) - d^n/dx^n pi cot(pi x)

Large numbers have Stirling's series, with Bernoulli's numbers.
"""

from __future__ import annotations

import math
from fractions import Fraction

from nanoloom.linalg.builder.scalar import Scalar, constant, select
from nanoloom.linalg.special.polynomial import horner

BERNOULLI = (  # of 2, 4, 6 ...
    Fraction(1, 6), Fraction(-1, 30), Fraction(1, 42), Fraction(-1, 30),
    Fraction(5, 66), Fraction(-691, 2730), Fraction(7, 6), Fraction(-3617, 510),
    Fraction(43867, 798), Fraction(-174611, 330),
)  # fmt: skip
LARGE = 8  # from here on Stirling's series is exact to 2^-53
# lgamma(x) / ((x - 1) (x - 2)) in 2 x - 3 on 1 <= x <= 2, error 2^-53.6:
LGAMMA = (
    0.4831289505409809,
    -0.07297994795715304,
    0.01572785026864542,
    -0.003913560937627712,
    0.0010498186643114226,
    -0.00029455070147065866,
    8.510090557578434e-05,
    -2.5094329288815257e-05,
    7.511379855481206e-06,
    -2.274243403133106e-06,
    6.948877197562772e-07,
    -2.138781508158277e-07,
    6.613648184278213e-08,
    -2.0587178010528767e-08,
    6.5744295616983814e-09,
    -2.0645205106753336e-09,
    5.338892309612246e-10,
    -1.6832632347974095e-10,
    1.0811060848639768e-10,
    -3.44138388395326e-11,
)


def lgamma(x: Scalar) -> Scalar:
    """Of 1 to 2 a polynomial, below 8 by the numbers between; infinite at 0, -1 ..."""
    size = x.absolute()
    above = _of_positive(size)
    turned = (_sine(size) * size).absolute()
    below = constant(math.log(math.pi), x.dtype) - turned.math("log") - above
    found = select(x < 0, below, above)
    found = select(size.equal(math.inf), size, found)
    return select(x.equal(0), constant(math.inf, x.dtype), found)


def _of_positive(x: Scalar) -> Scalar:
    """sum log(x - k) + lgamma(x - sum 1), or lgamma(x + 1) - log(x) below 1."""
    small, large = x < 1, x >= LARGE
    product, rest = constant(1, x.dtype), x
    for _ in range(LARGE - 2):
        further = rest > 2
        rest = select(further, rest - 1, rest)
        product = select(further, product * rest, product)
    rest = select(small, x + 1, rest)
    # Of the distance from 1, which is exact where the logarithm is near 0.
    first = select(small, x - 1, rest - 2)
    near = horner(rest * 2 - 3, LGAMMA) * select(small, x, rest - 1) * first
    logarithm = select(large, x, select(small, x, product)).math("log")
    near = near + select(small, -logarithm, logarithm)
    inverse = 1 / x
    series = [
        float(b / (2 * k * (2 * k - 1))) for k, b in enumerate(BERNOULLI[:LARGE], 1)
    ]
    tail = horner(inverse * inverse, series) * inverse + 0.5 * math.log(2 * math.pi)
    far = (x - 0.5) * logarithm - x + tail
    return select(large, far, near)


def _sine(x: Scalar) -> Scalar:
    """sin(pi x), of the distance from the nearest integer; its sign is any."""
    return ((x - x.math("roundeven")) * math.pi).math("sin")


def digamma(x: Scalar) -> Scalar:
    """Negative infinity at 0, as 1 / -x; NaN at -1, -2 ..."""
    negative = x < 0
    at = select(negative, 1 - x, x)
    found = _digamma_of_positive(at)
    turned = found - _cotangent(x) * math.pi
    pole = x.math("roundeven").equal(x)
    turned = select(pole, constant(math.nan, x.dtype), turned)
    found = select(negative, turned, found)
    zero = constant(math.inf, x.dtype).math("copysign", -x)
    return select(x.equal(0), zero, found)


def _digamma_of_positive(x: Scalar) -> Scalar:
    total = constant(0, x.dtype)
    for _ in range(LARGE):
        further = x < LARGE
        total = select(further, total - 1 / x, total)
        x = select(further, x + 1, x)
    inverse = 1 / x
    square = inverse * inverse
    series = [float(-b / (2 * k)) for k, b in enumerate(BERNOULLI[:LARGE], 1)]
    tail = horner(square, series) * square
    return total + (tail - inverse * 0.5 + x.math("log"))


def polygamma(x: Scalar, n: int) -> Scalar:
    """psi_n; at 0, -1, -2 ... infinite, as zeta(n + 1, x) is."""
    if n == 0:
        return digamma(x)
    negative = x <= 0
    sign = -1.0 if n % 2 == 0 else 1.0
    above = _zeta(select(negative, 1 - x, x), n + 1) * math.factorial(n) * sign
    turned = horner(_cotangent(x), _slopes(n)) * math.pi ** (n + 1)
    below = above * (-1.0) ** n - turned
    pole = x.math("roundeven").equal(x)
    below = select(pole, constant(sign * math.inf, x.dtype), below)
    return select(negative, below, above)


def _cotangent(x: Scalar) -> Scalar:
    """cot(pi x), of the distance from where it is infinite or 0, whichever is near."""
    rest = x - x.math("roundeven")
    near = rest.absolute() < 0.25
    angle = select(near, rest.absolute(), 0.5 - rest.absolute())
    tangent = (angle * math.pi).math("tan")
    return select(near, 1 / tangent, tangent).math("copysign", rest)


def _slopes(n: int) -> list[float]:
    """The n-th derivative of cot, as a polynomial of cot: cot' = -(1 + cot^2)."""
    found = [0, 1]
    for _ in range(n):
        slope = [-k * c for k, c in enumerate(found)][1:]
        found = [0] * (len(slope) + 2)
        for k, c in enumerate(slope):
            found[k] += c
            found[k + 2] += c
    return [float(c) for c in found]


def _zeta(x: Scalar, s: int) -> Scalar:
    """sum (x + k)^-s, k = 0, 1 ...: the first by themselves, the rest by Euler and
    Maclaurin."""
    total = constant(0, x.dtype)
    for k in range(LARGE + s):
        total = total + _power(1 / (x + k), s)
    inverse = 1 / (x + (LARGE + s))
    series, factor = [], Fraction(1)
    for k, b in enumerate(BERNOULLI, 1):
        factor = Fraction(s) if k == 1 else factor * (s + 2 * k - 3) * (s + 2 * k - 2)
        series.append(float(b * factor / math.factorial(2 * k)))
    tail = horner(inverse * inverse, series) * inverse + 0.5
    tail = tail * inverse + 1 / (s - 1)
    return total + tail * _power(inverse, s - 1)


def _power(x: Scalar, n: int) -> Scalar:
    """By squares."""
    if n == 1:
        return x
    half = _power(x, n // 2)
    return half * half * x if n % 2 else half * half
