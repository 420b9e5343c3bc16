"""Dimensions that are one: of a network's tensors, and of the loops over them.

A dimension of a tensor is the same as the axis that goes over it, and as that dimension
of every other tensor which the axis goes over.  All that are one lie in memory alike.
"""

from __future__ import annotations

from nanoloom.ir.linalg_query import Op
from nanoloom.ir.mlir import ir

# Of a tensor; or an axis of the generic that makes it: -1, -2, ...  An operation itself
# is no key, its hash changes with its operands.
Dim = tuple[ir.Value, int]


class Links:
    """Sets of dimensions, joined as long as there is something to join."""

    def __init__(self) -> None:
        self.parents: dict[Dim, Dim] = {}

    def find(self, dim: Dim) -> Dim:
        """The one that stands for all that are the same as this."""
        parent = self.parents.setdefault(dim, dim)
        while parent != dim:
            above = self.parents[parent]
            self.parents[dim] = above
            dim, parent = parent, above
        return dim

    def join(self, one: Dim, other: Dim) -> None:
        first, second = self.find(one), self.find(other)
        if first != second:
            self.parents[second] = first

    def sets(self) -> dict[Dim, list[Dim]]:
        """Each set by the one that stands for it, in the order of reading."""
        found: dict[Dim, list[Dim]] = {}
        for dim in list(self.parents):
            found.setdefault(self.find(dim), []).append(dim)
        return found


def axis(op: Op, number: int) -> Dim:
    """A loop of a generic."""
    return (op.operation.results[0], -1 - number)


def shape_of(value: ir.Value) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape)


def is_tensor(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)
