"""How a reduction in the IR combines what it reads."""

from __future__ import annotations

from nanoloom.ir.linalg_query import (
    Op,
    body,
    factors_of,
    is_contraction,
    iterators,
    multiplied,
    yielded,
)
from nanoloom.ir.mlir import ir
from nanoloom.nest.reduction import WIDENING
from nanoloom.nest.statement import Semiring


def semiring_of(op: Op) -> Semiring | None:
    """How a reduction with one result combines, None if that is not in sight."""
    if "reduction" not in iterators(op) or len(op.operation.results) != 1:
        return None
    block = body(op)
    accumulator = list(block.arguments)[-1]
    total = yielded(op)[0].owner
    if isinstance(total, ir.Block) or accumulator not in list(total.operands):
        return None
    if not is_contraction(op):
        return Semiring(total.name)
    (factor,) = [v for v in total.operands if v != accumulator]
    product = multiplied(factor)
    assert product is not None, "a contraction multiplies"
    return Semiring(total.name, product.name, widening_of(product))


def widening_of(product: ir.Operation) -> tuple[str, ...]:
    """Of a product's operands, as they are multiplied."""
    owners = [value.owner for value in factors_of(product)]
    names = ["" if isinstance(o, ir.Block) else o.name for o in owners]
    return tuple(name if name in WIDENING else "" for name in names)
