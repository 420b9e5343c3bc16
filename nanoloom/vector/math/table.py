"""`EXPANSIONS`: which math operation becomes which polynomial, and how exact it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nanoloom.ir.mlir import ir
from nanoloom.vector.math.erf import erf, erfc
from nanoloom.vector.math.exp import exp, exp2, exp_nonpositive, expm1
from nanoloom.vector.math.hyperbolic import acosh, asinh, atanh, cosh, sinh
from nanoloom.vector.math.inverse_trig import acos, asin, atan, atan2
from nanoloom.vector.math.log import log, log1p, log2, log10
from nanoloom.vector.math.power import cbrt, powf, rsqrt, sqrt
from nanoloom.vector.math.remainder import remf
from nanoloom.vector.math.tanh import sigmoid, tanh
from nanoloom.vector.math.trig import cos, sin, tan


@dataclass(frozen=True)
class Expansion:
    """How a function is made of arithmetic.

    build: takes ir.Values of f32, or of one vector type of f32 (any rank, fixed or
        scalable), builds at the current insertion point, returns a value of that type.
    ulp: the largest error in units in the last place of the f32 result.
    ulp_f64: the same of f64, which it then takes as well.
    note: where the result is not what the unbounded function would give.
    native: an instruction of every target; the operation may stay as it is.
    """

    build: Callable[..., ir.Value]
    ulp: float
    note: str = ""
    native: bool = False
    ulp_f64: float | None = None


ANGLES = "NaN from 2^45 on"

# The errors are the largest found, rounded up to a tenth: over every f32 of the binades
# where a function is not trivial and one in 509 of the rest (powf and atan2: over 10^8
# random pairs).  The tests sample them again.
EXPANSIONS: dict[str, Expansion] = {
    "math.exp": Expansion(exp, 1.1, ulp_f64=1.1),
    "math.exp2": Expansion(exp2, 1.1, "exact for integers"),
    "math.expm1": Expansion(expm1, 1.6, ulp_f64=2.2),
    "math.log": Expansion(log, 1.0, ulp_f64=1.4),
    "math.log1p": Expansion(log1p, 1.6, ulp_f64=2.0),
    "math.log2": Expansion(log2, 1.5, "exact for powers of two"),
    "math.log10": Expansion(log10, 1.5),
    "math.erf": Expansion(erf, 1.5),
    "math.erfc": Expansion(erfc, 4.0),
    "math.tanh": Expansion(tanh, 2.0, ulp_f64=2.2),
    "math.sqrt": Expansion(sqrt, 0.5, "one instruction", native=True),
    "math.rsqrt": Expansion(rsqrt, 1.5),
    "math.cbrt": Expansion(cbrt, 0.8),
    "math.powf": Expansion(powf, 1.5, "all special cases of IEEE 754"),
    "arith.remf": Expansion(remf, 0.0, "exact; the sign of the dividend"),
    "math.sin": Expansion(sin, 1.6, ANGLES),
    "math.cos": Expansion(cos, 1.6, ANGLES),
    "math.tan": Expansion(tan, 2.5, ANGLES),
    "math.asin": Expansion(asin, 1.4),
    "math.acos": Expansion(acos, 1.1),
    "math.atan": Expansion(atan, 1.4),
    "math.atan2": Expansion(atan2, 1.6),
    "math.sinh": Expansion(sinh, 1.7, ulp_f64=1.8),
    "math.cosh": Expansion(cosh, 1.6, ulp_f64=1.6),
    "math.asinh": Expansion(asinh, 1.9, ulp_f64=2.5),
    "math.acosh": Expansion(acosh, 2.1, ulp_f64=2.5),
    "math.atanh": Expansion(atanh, 2.2, ulp_f64=2.6),
}

# No operation of the math dialect: builders for who needs them.
BUILDERS: dict[str, Expansion] = {
    "exp, x <= 0": Expansion(
        exp_nonpositive, 1.1, "0 below -87.68, of f64 -708.74", ulp_f64=1.1
    ),
    "sigmoid": Expansion(
        sigmoid, 2.5, "0 below -89, of f64 -710, instead of a denormal", ulp_f64=2.5
    ),
}
