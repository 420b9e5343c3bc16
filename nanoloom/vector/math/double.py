"""log1p and expm1 on f64, which MLIR lowers to log(1 + x) and exp(x) - 1.

Those lose the digits of small x.  Kahan's corrections undo what 1 + x and exp(x) were
rounded by (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 1.14.1):
a few units in the last place, of libm's log and exp.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from nanoloom.ir.mlir import ir, math
from nanoloom.vector.math.lanes import Lanes, select


def log1p(x: ir.Value) -> ir.Value:
    """log(1 + x) = log(u) * x / (u - 1), u = 1 + x rounded."""
    small = Lanes(x)
    u = small + 1.0
    found = small * (Lanes(math.log(u.value)) / (u - 1.0))
    found = select(u.equals(1.0), small, found)
    return select(u.equals(inf), u, found).value


def expm1(x: ir.Value) -> ir.Value:
    """exp(x) - 1 = (u - 1) * x / log(u), u = exp(x) rounded."""
    exponent = Lanes(x)
    u = Lanes(math.exp(x))
    below = u - 1.0
    found = below * (exponent / Lanes(math.log(u.value)))
    found = select(u.equals(1.0), exponent, found)
    found = select(below.equals(-1.0), -1.0, found)  # of a denormal u log is coarse
    return select(u.equals(inf), u, found).value


OF_DOUBLES: dict[str, Callable[[ir.Value], ir.Value]] = {
    "math.expm1": expm1,
    "math.log1p": log1p,
}
