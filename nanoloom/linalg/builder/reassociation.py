"""Reshapes as views: `tensor.collapse_shape` and `tensor.expand_shape`, no data moved.

A reshape keeps the row-major order, so both shapes cut into the same groups: runs of
dimensions with equal products.  Where every group has one dimension on one side, one
operation does it; otherwise each group is collapsed to one dimension and expanded.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from nanoloom.ir.mlir import ir, tensor

Groups = list[list[int]]


def groups_of(old: Sequence[int], new: Sequence[int]) -> tuple[Groups, Groups] | None:
    """Runs of `old` and `new` with equal products; None if one side has rank 0.

    [1, 128, 768] and [1, 128, 12, 64]: [[0], [1], [2]] and [[0], [1], [2, 3]].
    """
    if not old or not new:
        return None
    left: Groups = []
    right: Groups = []
    i = j = 0
    while i < len(old) and j < len(new):
        begin = (i, j)
        one, other = old[i], new[j]
        i, j = i + 1, j + 1
        while one != other:
            if one < other:
                one, i = one * old[i], i + 1
            else:
                other, j = other * new[j], j + 1
        left.append(list(range(begin[0], i)))
        right.append(list(range(begin[1], j)))
    left[-1] += range(i, len(old))  # what is left over has extent 1
    right[-1] += range(j, len(new))
    return left, right


def reshape(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """A tensor without elements or with equal count under another static shape."""
    old = list(ir.RankedTensorType(value.type).shape)
    if old == list(shape):
        return value
    if 0 in old:
        kind = ir.RankedTensorType(value.type).element_type
        return tensor.empty(list(shape), kind)
    groups = groups_of(old, shape)
    if groups is None:
        if not old:
            return expand(value, [], shape)
        return collapse(value, [])
    left, right = groups
    middle = value
    if any(len(one) > 1 for one in left):
        middle = collapse(value, left)
    return expand(middle, right, shape)


def collapse(value: ir.Value, groups: Groups) -> ir.Value:
    """tensor.collapse_shape by groups of dimensions (all into rank 0 for [])."""
    kind = ir.RankedTensorType(value.type)
    if kind.rank == len(groups):
        return value
    shape = [prod(kind.shape[d] for d in g) for g in groups]
    made = ir.RankedTensorType.get(shape, kind.element_type)
    return tensor.CollapseShapeOp(made, value, groups).result


def expand(value: ir.Value, groups: Groups, shape: Sequence[int]) -> ir.Value:
    """tensor.expand_shape into `shape` by groups of its dimensions."""
    kind = ir.RankedTensorType(value.type)
    if kind.rank == len(shape):
        return value
    made = ir.RankedTensorType.get(list(shape), kind.element_type)
    return tensor.ExpandShapeOp(made, value, groups, [], list(shape)).result
