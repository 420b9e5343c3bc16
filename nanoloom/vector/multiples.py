"""Whether an index is a multiple of a number, as far as its making says."""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.mlir import ir
from nanoloom.vector.access import constant_of


def is_multiple(value: ir.Value | int, number: int) -> bool:
    """Whether it is known that a number divides an index."""
    known = value if isinstance(value, int) else constant_of(value)
    if known is not None or isinstance(value, int):
        return known is not None and known % number == 0
    owner = value.owner
    if isinstance(owner, ir.Block):
        return steps_by(ir.BlockArgument(value), owner.owner.operation, number)
    operands = list(owner.operands)
    match owner.name:
        case "arith.muli":
            return any(is_multiple(x, number) for x in operands)
        case "arith.addi":
            return all(is_multiple(x, number) for x in operands)
        case "affine.apply":
            indexing: ir.AffineMap = owner.attributes["map"].value  # type: ignore[attr-defined]
            (result,) = indexing.results
            return divides(number, result, operands, indexing.n_dims)
        case _:
            return False


def steps_by(variable: ir.BlockArgument, loop: ir.Operation, number: int) -> bool:
    """Whether a loop's variable goes from a multiple on in steps of multiples."""
    place = variable.arg_number
    if loop.name == "scf.for" and place == 0:
        begin, _, step = list(loop.operands)[:3]
        return is_multiple(begin, number) and is_multiple(step, number)
    if loop.name != "scf.forall":
        return False
    words = ("staticLowerBound", "staticStep")
    bounds = [list(loop.attributes[word]) for word in words]  # type: ignore[call-overload]
    # What is not known while compiling is a large negative number.
    return place < len(bounds[0]) and all(
        int(row[place]) >= 0 and int(row[place]) % number == 0 for row in bounds
    )


def divides(
    number: int, expr: ir.AffineExpr, operands: Sequence[ir.Value], dims: int
) -> bool:
    """Whether a number divides an expression for all values of its operands."""
    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value % number == 0
    if isinstance(expr, ir.AffineDimExpr):
        return is_multiple(operands[expr.position], number)
    if isinstance(expr, ir.AffineSymbolExpr):
        return is_multiple(operands[dims + expr.position], number)
    if isinstance(expr, ir.AffineAddExpr):
        parts = (divides(number, e, operands, dims) for e in (expr.lhs, expr.rhs))
        return all(parts)
    if isinstance(expr, ir.AffineMulExpr):
        parts = (divides(number, e, operands, dims) for e in (expr.lhs, expr.rhs))
        return any(parts)
    return False
