"""`SPECIAL`: the functions by the names of their operators, and how exact they are."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.elementwise.arithmetic import Lower, simple
from nanoloom.linalg.special import bessel, gamma, normal
from nanoloom.linalg.special.polynomial import Formula, in_double


@dataclass(frozen=True)
class Special:
    """A formula in f64, and its largest error in units in the last place of f64.

    note: where the error is of another number than of the result.
    """

    formula: Formula
    ulp: float
    note: str = ""


NEAR_ZEROS = "of 1 where the result is below 1"
SPECIAL: dict[str, Special] = {
    "Erfcx": Special(normal.erfcx, 6.0),
    "ErfInv": Special(normal.erfinv, 3.0),
    "Ndtr": Special(normal.ndtr, 4.0),
    "Ndtri": Special(normal.ndtri, 6.0),
    "LogNdtr": Special(normal.log_ndtr, 6.0),
    "Lgamma": Special(gamma.lgamma, 4.0, f"from -10 on, {NEAR_ZEROS}"),
    "Digamma": Special(gamma.digamma, 8.0, f"from -10 on, {NEAR_ZEROS}"),
    "Polygamma": Special(gamma.polygamma, 16.0, "n up to 9, from -6 on"),
    "I0": Special(bessel.i0, 4.0),
    "I0e": Special(bessel.i0e, 3.0),
    "I1": Special(bessel.i1, 4.0),
    "I1e": Special(bessel.i1e, 4.0),
}


# What the math dialect has: in the element type itself.
OF_DIALECT = {
    "Atan2": "atan2", "Erfc": "erfc", "Exp2": "exp2", "Expm1": "expm1",
    "Log10": "log10", "Log1p": "log1p", "Log2": "log2",
}  # fmt: skip


def lowering(formula: Formula) -> Lower:
    return lambda b, node: b.elementwise(in_double(formula), node.input(0))


def of_dialect(function: str) -> Lower:
    return simple(lambda x, *others: x.math(function, *others))


def polygamma(b: Builder, node: Node) -> Tensor:
    n = node.int("n", 0)
    made = in_double(lambda x: gamma.polygamma(x, n))
    return b.elementwise(made, node.input(0))


OPERATORS: dict[str, Lower] = {
    **{name: lowering(each.formula) for name, each in SPECIAL.items()},
    **{name: of_dialect(function) for name, function in OF_DIALECT.items()},
    "Polygamma": polygamma,
}
