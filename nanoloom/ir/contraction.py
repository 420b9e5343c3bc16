"""Contractions in the IR: their roles, read as those of a stage."""

from __future__ import annotations

from nanoloom.ir.linalg_query import (
    Kind,
    Op,
    base,
    inputs,
    is_contraction,
    is_generic,
    kind,
)
from nanoloom.ir.loop_nest import alone
from nanoloom.ir.mlir import ir
from nanoloom.nest import contraction
from nanoloom.nest.contraction import Contraction


def analyse(op: Op) -> Contraction | None:
    """The roles of a contraction's dimensions, None if it does not fit the form."""
    return contraction.roles(alone(op))


def is_product(op: Op) -> bool:
    """Whether nanokernels may take a contraction: rows by columns, in any order.

    Not one that works on each column alone, as a depthwise convolution does.
    """
    return is_contraction(op) and analyse(op) is not None


def comes_from_product(value: ir.Value) -> bool:
    """Whether a product's kernel makes it: by elementwise work behind one.

    Not where a sum that is read, too, stands behind the product: of a normalization.
    """
    waiting, seen = [value], set[ir.Operation]()
    last: Op | None = None
    while waiting:
        owner = base(waiting.pop()).owner
        if isinstance(owner, ir.Block) or owner in seen or not is_generic(owner.opview):
            continue
        seen.add(owner)
        if kind(owner.opview) is Kind.ELEMENTWISE:
            waiting += inputs(owner.opview)
        elif last is None or last.operation.is_before_in_block(owner):
            last = owner.opview
    return last is not None and is_product(last)


def elements(op: Op, shape: Contraction) -> tuple[str, str, str]:
    """Element types of the left and right operand and of the sums."""
    return contraction.elements(alone(op), shape)
