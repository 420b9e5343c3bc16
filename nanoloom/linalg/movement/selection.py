"""Operators whose output's shape depends on the data: they need known inputs.

The graph stage computes them when their inputs are known, so these lowerings only ask
for the inputs, which binds them where the model's inputs may be bound.
"""

from __future__ import annotations

from collections.abc import Callable

from nanoloom.linalg.words.builder import Builder
from nanoloom.linalg.words.node import Node
from nanoloom.linalg.words.tensor import Tensor


def needs(index: int) -> Callable[[Builder, Node], Tensor]:
    """A lowering that needs one input to be known."""

    def lower(b: Builder, node: Node) -> Tensor:
        del b
        node.known(index)
        raise node.unsupported("the shape of its output depends on the data")

    return lower


OPERATORS = {
    "Compress": needs(1),
    "NonMaxSuppression": needs(0),
    "NonZero": needs(0),
    "Unique": needs(0),
}
