"""What a schedule needs to know of a contraction: the roles of its dimensions."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.kernels.structure import (
    Op,
    all_dims,
    body,
    dims_of,
    extents,
    input_count,
    is_contraction,
    iterators,
    map_dims,
    maps,
)
from nanoloom.mlir import ir

SIGNS = {"arith.extsi": "s", "arith.extui": "u"}


@dataclass(frozen=True)
class Contraction:
    """out[batch, m, n] += left[batch, m, k] * right[batch, k, n], any number of each.

    left, right: operand numbers; the right one has the result's innermost dimension n.
    column: that dimension.  rows: the left operand's parallel dimensions.  shared:
    those of both.  reduced: in loop order.  contiguous: n is innermost in right.
    """

    left: int
    right: int
    column: int
    rows: tuple[int, ...]
    shared: tuple[int, ...]
    other_columns: tuple[int, ...]
    reduced: tuple[int, ...]
    extents: tuple[int, ...]
    result: tuple[int, ...]
    contiguous: bool


def analyse(op: Op) -> Contraction | None:
    """The roles of a contraction's dimensions, None if it does not fit the form."""
    assert input_count(op) == 2
    indexings = maps(op)
    result = map_dims(indexings[2])
    if None in result or not result:
        return None
    column = result[-1]
    assert column is not None
    one, other = all_dims(indexings[0]), all_dims(indexings[1])
    if column in one and column in other:
        return None
    right = 0 if column in one else 1
    left = 1 - right
    mine, theirs = all_dims(indexings[right]), all_dims(indexings[left])
    reduced = tuple(d for d, k in enumerate(iterators(op)) if k == "reduction")
    parallel = [d for d in result if d is not None]
    dims = map_dims(indexings[right])
    if column not in dims:
        return None
    return Contraction(
        left,
        right,
        column,
        tuple(d for d in parallel if d in theirs and d not in mine),
        tuple(d for d in parallel if d in theirs and d in mine),
        tuple(d for d in parallel if d in mine and d not in theirs and d != column),
        reduced,
        tuple(extents(op)),
        tuple(parallel),
        dims[-1] == column,
    )


def is_product(op: Op) -> bool:
    """Whether nanokernels may take a contraction: rows by columns, in any order.

    Not one that works on each column alone, as a depthwise convolution does.
    """
    return is_contraction(op) and analyse(op) is not None


def elements(op: Op, shape: Contraction) -> tuple[str, str, str]:
    """Element types of the left and right operand and of the sums.

    As MLIR writes them, but narrow integers by the sign they are extended with: s8, u8.
    """
    narrow = [element(op, number) for number in (shape.left, shape.right)]
    return narrow[0], narrow[1], element(op, 2)


def element(op: Op, number: int) -> str:
    kind = ir.ShapedType(op.operation.operands[number].type).element_type
    if not isinstance(kind, ir.IntegerType):
        return str(kind)
    users = {use.owner.operation.name for use in body(op).arguments[number].uses}
    signs = {SIGNS[name] for name in users if name in SIGNS}
    return f"{signs.pop()}{kind.width}" if len(signs) == 1 else str(kind)


def left_lies_along(op: Op, shape: Contraction) -> bool:
    """Whether the last reduced dimension steps through the left operand's elements."""
    depth = shape.reduced[-1]
    *outer, last = maps(op)[shape.left].results
    return terms(last).count(depth) == 1 and all(depth not in dims_of(e) for e in outer)


def terms(expr: ir.AffineExpr) -> list[int]:
    """The dimensions that are added up in an expression, each as it is."""
    if isinstance(expr, ir.AffineAddExpr):
        return terms(expr.lhs) + terms(expr.rhs)
    return [expr.position] if isinstance(expr, ir.AffineDimExpr) else []
