"""Kinds of reductions: what combines, what changes no result, what is no work."""

from __future__ import annotations

from dataclasses import dataclass

NUMBERS = ("zero", "one", "ones", "highest", "lowest")  # ones: all bits


@dataclass(frozen=True)
class Kind:
    """An operation, by MLIR's name, that combines two numbers into one.

    word: what vector.reduction calls it.  neutral: the number that changes nothing, one
    of NUMBERS.
    """

    operation: str
    word: str
    neutral: str


KINDS = {
    kind.operation: kind
    for kind in (
        Kind("arith.addf", "add", "zero"),
        Kind("arith.addi", "add", "zero"),
        Kind("arith.mulf", "mul", "one"),
        Kind("arith.muli", "mul", "one"),
        Kind("arith.maximumf", "maximumf", "lowest"),
        Kind("arith.minimumf", "minimumf", "highest"),
        Kind("arith.maxnumf", "maxnumf", "lowest"),
        Kind("arith.minnumf", "minnumf", "highest"),
        Kind("arith.maxsi", "maxsi", "lowest"),
        Kind("arith.minsi", "minsi", "highest"),
        Kind("arith.maxui", "maxui", "zero"),
        Kind("arith.minui", "minui", "ones"),
        Kind("arith.andi", "and", "ones"),
        Kind("arith.ori", "or", "zero"),
        Kind("arith.xori", "xor", "zero"),
    )
}
KEEPS_NAN = ("arith.minimumf", "arith.maximumf")  # on x86 three instructions

# How products are combined, and what a product is: what nanokernels multiply.
# A product of bits counts those that differ: the ones of xor.
OF_BITS = ("arith.addi", "math.ctpop")
SUMS_OF_PRODUCTS = (
    ("arith.addf", "arith.mulf"),
    ("arith.addi", "arith.muli"),
    OF_BITS,
)
# The number that changes nothing as both operands of a product, by the same.
OF_PRODUCTS = {
    **dict.fromkeys(SUMS_OF_PRODUCTS, "zero"),
    ("arith.minimumf", "arith.addf"): "highest",
    ("arith.minnumf", "arith.addf"): "highest",
    ("arith.maximumf", "arith.addf"): "lowest",
    ("arith.maxnumf", "arith.addf"): "lowest",
}

WIDENING = ("arith.extf", "arith.extsi", "arith.extui")  # exact
NO_WORK = (*WIDENING, "arith.constant")
