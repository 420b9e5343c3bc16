"""What an index is a multiple of, whatever loops it depends on."""

from __future__ import annotations

from math import gcd

from nanoloom.ir.access import constant_of
from nanoloom.ir.mlir import ir


def is_multiple(value: ir.Value | int, number: int) -> bool:
    """Whether it is known that a number divides an index."""
    known = value if isinstance(value, int) else multiple(value)
    return known % number == 0


def multiple(value: ir.Value) -> int:
    """The largest number that an index is known to be a multiple of; 0: it is 0."""
    number = constant_of(value)
    if number is not None:
        return number
    owner = value.owner
    if isinstance(owner, ir.Block):
        return step_of(value, owner)
    if owner.name == "affine.apply":
        indexing = ir.AffineMapAttr(owner.attributes["map"]).value
        (expr,) = indexing.results
        operands = [multiple(x) for x in owner.operands]
        return of_expression(expr, operands, indexing.n_dims)
    if owner.name == "arith.addi":
        return gcd(*(multiple(x) for x in owner.operands))
    if owner.name == "arith.muli":
        one, other = (multiple(x) for x in owner.operands)
        return one * other
    return 1


def step_of(value: ir.Value, block: ir.Block) -> int:
    """The same of the variable of a loop."""
    loop = block.owner
    if loop.name == "scf.for" and value == block.arguments[0]:
        lower, _, step = list(loop.operands)[:3]
        return gcd(multiple(lower), multiple(step))
    if loop.name == "scf.forall":
        number = list(block.arguments).index(value)
        words = ("staticLowerBound", "staticStep")
        bounds = [ir.DenseI64ArrayAttr(loop.attributes[word]) for word in words]
        numbers = [bound[number] for bound in bounds]
        return gcd(*numbers) if min(numbers) >= 0 else 1
    return 1


def of_expression(expr: ir.AffineExpr, operands: list[int], dims: int) -> int:
    """The same of an affine expression, operands: of dimensions, then of symbols."""
    if isinstance(expr, ir.AffineDimExpr):
        return operands[expr.position]
    if isinstance(expr, ir.AffineSymbolExpr):
        return operands[dims + expr.position]
    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value
    if isinstance(expr, ir.AffineAddExpr | ir.AffineMulExpr):
        left, right = (of_expression(e, operands, dims) for e in (expr.lhs, expr.rhs))
        return gcd(left, right) if isinstance(expr, ir.AffineAddExpr) else left * right
    return 1
