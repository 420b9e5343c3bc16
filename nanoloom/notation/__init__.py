"""Computations that come from no model, written as index expressions.

i, j, k = axes("i j k")
a, b = Buffer("a", (512, 256)), Buffer("b", (256, 300))
c = Buffer("c")
c[i, j] += a[i, k] * b[k, j]
program = nanoloom.compile(computation(c))

`round` is there, but not in `import *`: Python's own would be gone.
"""

from nanoloom.notation.buffer import Buffer, constant
from nanoloom.notation.computations import Computation, computation
from nanoloom.notation.expression import cast, position, select
from nanoloom.notation.functions import (
    absolute,
    ceil,
    cos,
    erf,
    exp,
    floor,
    log,
    maximum,
    minimum,
    popcount,
    power,
    rsqrt,
    sin,
    sqrt,
    tanh,
)
from nanoloom.notation.functions import round as round
from nanoloom.notation.index import axes

__all__ = [
    "Buffer",
    "Computation",
    "absolute",
    "axes",
    "cast",
    "ceil",
    "computation",
    "constant",
    "cos",
    "erf",
    "exp",
    "floor",
    "log",
    "maximum",
    "minimum",
    "popcount",
    "position",
    "power",
    "rsqrt",
    "select",
    "sin",
    "sqrt",
    "tanh",
]
