"""Optional operators where the optional is a tensor, which is always there."""

from __future__ import annotations

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import BOOL
from nanoloom.linalg.builder.tensor import Tensor


def get_element(b: Builder, node: Node) -> Tensor:
    del b
    return node.input(0)


def has_element(b: Builder, node: Node) -> Tensor:
    """True for a tensor, False for an omitted input."""
    return b.full(node.output_shapes[0], node.optional(0) is not None, BOOL)


OPERATORS = {"OptionalGetElement": get_element, "OptionalHasElement": has_element}
