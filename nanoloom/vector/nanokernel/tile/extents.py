"""How large a tile is at most, where its extents are known only as it runs."""

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
    """What an index is at most: min(4, ...) is at most 4."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "affine.min":
        return None
    results = owner.attributes["map"].value.results  # type: ignore[attr-defined]
    numbers = [e.value for e in results if isinstance(e, ir.AffineConstantExpr)]
    return min(numbers, default=None)
