"""Operators that choose elements: of the largest shape, and how many were chosen.

graph/counted puts them in the place of ONNX's.
"""

from __future__ import annotations

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.index_checks import check
from nanoloom.linalg.builder.indexing import INT64
from nanoloom.linalg.builder.loops import repeat
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import from_index
from nanoloom.linalg.builder.slices import element, index, with_element
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.movement.suppression import suppressed


def places(b: Builder, node: Node) -> list[Tensor]:
    """Where a mask is true, in order, and in how many places: [n] and [1].

    Every place is written behind those found, and stays where it is one of them.
    """
    mask = node.input(0)
    start = [b.full(mask.shape, 0, INT64), b.full([1], 0, INT64)]

    def step(i: ir.Value, now: list[Tensor]) -> list[Tensor]:
        found, number = now
        last = element(b, number, [index(0)])
        found = with_element(b, found, [last.index()], from_index(i))
        more = last + element(b, mask, [i]).cast(INT64)
        return [found, with_element(b, number, [index(0)], more)]

    return repeat(b, mask.size, start, step)


def same_size(b: Builder, node: Node) -> Tensor:
    """Two sizes that must be equal, as one."""
    one, other = node.input(0), node.input(1)
    apart = b.elementwise(lambda x, y: (x - y).absolute(), one, other)
    check(b, node, apart, range(1), "difference of two sizes that must be equal,")
    return b.elementwise(lambda x, _: x, one, other)


def left(b: Builder, node: Node) -> Tensor:
    """What graph/counted has not put another operator in the place of."""
    del b
    raise node.unsupported("the shape of its output depends on the data")


OPERATORS = {
    "Compress": left,
    "NonMaxSuppression": left,
    "NonZero": left,
    "Places": places,
    "SameSize": same_size,
    "Suppressed": suppressed,
    "Unique": left,
}
