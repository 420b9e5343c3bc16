"""The arithmetic of a model: what its contractions multiply and add."""

from __future__ import annotations

import math

import onnx_ir

from nanoloom.graph.stage import optimize
from nanoloom.ir import mlir
from nanoloom.ir.access import constant_of
from nanoloom.ir.linalg_query import extents, is_contraction, is_generic
from nanoloom.linalg.operators import OPERATORS
from nanoloom.linalg.stage import lower


def contraction_flops(model: onnx_ir.Model) -> int | None:
    """Multiplications and additions of all contractions, two a product.

    model: bound; it is changed.  None where a number is not known: in a loop whose
    trips depend on the data.
    """
    graph = optimize(model, OPERATORS.keys())
    with mlir.context():
        module = lower(graph).module
        total = 0
        for op in mlir.named(module, "linalg.generic"):
            if is_generic(op) and is_contraction(op):
                times = trips(op)
                if times is None:
                    return None
                total += 2 * times * math.prod(extents(op))
    return total


def trips(op: mlir.ir.OpView) -> int | None:
    """How often an operation runs: the product of the loops around it."""
    count, around = 1, op.operation.parent
    while around is not None and around.name != "func.func":
        if around.name not in ("scf.for", "scf.if"):
            return None
        if around.name == "scf.for":
            bounds = [constant_of(value) for value in list(around.operands)[:3]]
            if None in bounds:
                return None
            first, last, step = (bound or 0 for bound in bounds)
            count *= max(0, -(-(last - first) // max(step, 1)))
        around = around.parent
    return count
