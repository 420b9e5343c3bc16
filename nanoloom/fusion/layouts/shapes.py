"""Tensors in other shapes: the same bytes, or new ones of the same number."""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.fusion.group import MOVABLE
from nanoloom.ir.linalg_query import base, filled_with
from nanoloom.ir.mlir import arith, ir, tensor
from nanoloom.linalg.builder.pointwise import pointwise


def again(value: ir.Value, kind: ir.RankedTensorType) -> ir.Value:
    """A new tensor of this type, filled as another one is."""
    source = base(value).owner
    made = tensor.empty(list(kind.shape), kind.element_type)
    if isinstance(source, ir.Block) or source.name in MOVABLE:
        return made
    element = filled_with(source.opview).attributes["value"]
    return pointwise([], made, lambda: arith.constant(kind.element_type, element))


def reshaped(
    value: ir.Value, kind: ir.RankedTensorType, groups: ir.ArrayAttr
) -> ir.Value:
    """The same elements in another shape."""
    if ir.RankedTensorType(value.type).rank > kind.rank:
        return tensor.CollapseShapeOp(kind, value, groups).result
    return tensor.ExpandShapeOp(kind, value, groups, [], list(kind.shape)).result


def reassociation(groups: Sequence[Sequence[int]]) -> ir.ArrayAttr:
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get(
        [
            ir.ArrayAttr.get([ir.IntegerAttr.get(i64, n) for n in group])
            for group in groups
        ]
    )


def grouped(narrow: list[int], wide: list[int]) -> list[list[int]]:
    """The dimensions of a shape that are each one of another, with as many elements."""
    found: list[list[int]] = []
    at = 0
    for extent in narrow:
        group, count = [at], wide[at]
        at += 1
        while count < extent:
            count *= wide[at]
            group.append(at)
            at += 1
        found.append(group)
    found[-1] += range(at, len(wide))
    return found
