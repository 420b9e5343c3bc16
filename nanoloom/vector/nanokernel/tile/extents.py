"""How large a tile is, also where its extents are known only as it runs."""

from __future__ import annotations

from nanoloom.kernels.structure import Op, map_dims, maps
from nanoloom.mlir import ir


def most_results(op: Op, dim: int) -> int | None:
    """How many results a contraction's tile has at most along a dimension."""
    place = map_dims(maps(op)[2]).index(dim)
    return most_of(op.operation.operands[2], place)


def most_of(value: ir.Value, place: int) -> int | None:
    """The extent of a dimension of a tensor, or what it is at most."""
    kind = ir.RankedTensorType(value.type)
    if not kind.is_dynamic_dim(place):
        return kind.shape[place]
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    if owner.name == "linalg.generic":
        return most_of(owner.operands[-1], place)
    if owner.name in ("tensor.extract_slice", "tensor.empty"):
        return most_number(dynamic_size(owner, place))
    return None


def dynamic_size(owner: ir.Operation, place: int) -> ir.Value:
    """The operand that says the extent of one dynamic dimension of a result."""
    kind = ir.ShapedType(owner.results[0].type)
    before = sum(kind.is_dynamic_dim(p) for p in range(place))
    operands = list(owner.operands)
    if owner.name == "tensor.empty":
        return operands[before]
    segments = owner.attributes["operandSegmentSizes"]
    return operands[int(segments[0]) + int(segments[1]) + before]  # type: ignore[index]


def most_number(value: ir.Value) -> int | None:
    """What an index is at most: min(4, ...) is at most 4, and 2 more than it 6."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    if owner.name == "affine.apply":
        indexing = owner.attributes["map"].value  # type: ignore[attr-defined]
        (expr,) = indexing.results
        dims = list(owner.operands)[: indexing.n_dims]
        return most_of_sum(expr, dims, list(owner.operands)[indexing.n_dims :])
    if owner.name != "affine.min":
        return None
    results = owner.attributes["map"].value.results  # type: ignore[attr-defined]
    numbers = [e.value for e in results if isinstance(e, ir.AffineConstantExpr)]
    return min(numbers, default=None)


def most_of_sum(
    expr: ir.AffineExpr, dims: list[ir.Value], symbols: list[ir.Value]
) -> int | None:
    """What an expression is at most, None unless it grows with all that is in it."""
    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value
    if isinstance(expr, ir.AffineDimExpr):
        return most_number(dims[expr.position])
    if isinstance(expr, ir.AffineSymbolExpr):
        return most_number(symbols[expr.position])
    if not isinstance(expr, (ir.AffineAddExpr, ir.AffineMulExpr)):
        return None
    left, right = (most_of_sum(x, dims, symbols) for x in (expr.lhs, expr.rhs))
    if left is None or right is None:
        return None
    if isinstance(expr, ir.AffineAddExpr):
        return left + right
    grows = isinstance(expr.rhs, ir.AffineConstantExpr) and right >= 0
    return left * right if grows else None


def extent_is_not_one(op: Op, dim: int) -> bool:
    """Whether a contraction's tile has several points along a dimension."""
    for value, indexing in zip(op.operation.operands, maps(op), strict=True):
        kind = ir.RankedTensorType(value.type)
        for place, expr in enumerate(indexing.results):
            if isinstance(expr, ir.AffineDimExpr) and expr.position == dim:
                return kind.is_dynamic_dim(place) or kind.shape[place] != 1
    return False
