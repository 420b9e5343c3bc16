"""How large a tile is, also where its extents are known only as it runs."""

from __future__ import annotations

from nanoloom.ir.access import constant_of
from nanoloom.ir.linalg_query import Op, map_dims, maps
from nanoloom.ir.mlir import ir, made_by
from nanoloom.linalg.builder.tensor_slices import bounds_of


def most_results(op: Op, dim: int) -> int | None:
    """How many results a contraction's tile has at most along a dimension."""
    place = map_dims(maps(op)[2]).index(dim)
    return most_of(op.operation.operands[2], place)


def most_of(value: ir.Value, place: int) -> int | None:
    """The extent of a dimension of a tensor, or what it is at most."""
    kind = ir.RankedTensorType(value.type)
    if not kind.is_dynamic_dim(place):
        return kind.shape[place]
    owner = made_by(value)
    if owner is None:
        return None
    if owner.name == "linalg.generic":
        return most_of(owner.operands[-1], place)
    if owner.name == "tensor.insert_slice":  # the tile's last rows are from elsewhere
        return most_of(owner.operands[1], place)
    if owner.name in ("tensor.extract_slice", "tensor.empty"):
        return most_number(dynamic_size(owner, place))
    return None


def dynamic_size(owner: ir.Operation, place: int) -> ir.Value:
    """The operand that says the extent of one dynamic dimension of a result."""
    kind = ir.ShapedType(owner.results[0].type)
    before = sum(kind.is_dynamic_dim(p) for p in range(place))
    if "static_sizes" not in owner.attributes:  # of what is made anew
        return list(owner.operands)[before]
    sizes = [x for x in bounds_of(owner)[1] if isinstance(x, ir.Value)]
    return sizes[before]


def most_number(value: ir.Value, vscale: int = 0) -> int | None:
    """What an index is at most: min(4, ...) is at most 4, and 2 more than it 6.

    vscale: what that is at most, 0 where nobody knows.
    """
    owner = made_by(value)
    if owner is None:
        return None
    if owner.name == "affine.apply":
        indexing = owner.attributes["map"].value  # type: ignore[attr-defined]
        (expr,) = indexing.results
        dims = list(owner.operands)[: indexing.n_dims]
        return most_of_sum(expr, dims, list(owner.operands)[indexing.n_dims :])
    if owner.name == "tensor.dim":  # as fusion leaves it of slices with fewer axes
        place = constant_of(owner.operands[1])
        return None if place is None else most_of(owner.operands[0], place)
    if owner.name != "affine.min":
        return None
    results = owner.attributes["map"].value.results  # type: ignore[attr-defined]
    numbers = [e.value for e in results if isinstance(e, ir.AffineConstantExpr)]
    return min([*numbers, *most_of_vectors(owner, vscale)], default=None)


def most_of_vectors(owner: ir.Operation, vscale: int) -> list[int]:
    """Of min(4 * vscale, 517 - i): what each of them is at most; [] without vscale."""
    indexing, operands = owner.attributes["map"].value, list(owner.operands)  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
    dims, symbols = operands[: indexing.n_dims], operands[indexing.n_dims :]
    vectors, rests = list[int](), list[int]()
    for expr in indexing.results:
        match expr:
            case ir.AffineSymbolExpr():
                vectors += times_vscale(symbols[expr.position], vscale)
            case ir.AffineDimExpr():
                vectors += times_vscale(dims[expr.position], vscale)
            case ir.AffineAddExpr(rhs=ir.AffineConstantExpr() as end):
                rests += [end.value] if counts_up(expr.lhs, dims) else []
            case _:
                pass
    return vectors + rests if vectors else []


def times_vscale(value: ir.Value, vscale: int) -> list[int]:
    """What 4 * vscale is at most; [] of anything else."""
    owner = made_by(value, "arith.muli")
    factors = list(owner.operands) if owner is not None and vscale else []
    counts = [constant_of(x) for x in factors if not made_by(x, "vector.vscale")]
    return [n * vscale for n in counts if n is not None and len(counts) == 1]


def counts_up(expr: ir.AffineExpr, dims: list[ir.Value]) -> bool:
    """Whether an expression is -i, i the place of a loop that begins at 0."""
    if not isinstance(expr, ir.AffineMulExpr) or not isinstance(
        expr.lhs, ir.AffineDimExpr
    ):
        return False
    place = dims[expr.lhs.position]
    loop = place.owner.owner if isinstance(place.owner, ir.Block) else None
    return (
        loop is not None
        and loop.name == "scf.for"
        and constant_of(loop.operands[0]) == 0
        and expr.rhs == ir.AffineConstantExpr.get(-1)
    )


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
