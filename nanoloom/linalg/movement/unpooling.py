"""MaxUnpool: elements written back to the places that MaxPool took them from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from nanoloom.graph.shared_decisions import COUNTED
from nanoloom.ir.mlir import arith, ir, tensor
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.index_checks import check
from nanoloom.linalg.builder.indexing import map_generic, position
from nanoloom.linalg.builder.loops import repeat
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, constant, select
from nanoloom.linalg.builder.slices import index
from nanoloom.linalg.builder.tensor import Tensor


def max_unpool(b: Builder, node: Node) -> Tensor:
    """Zeros but for x's elements, one after the other: of two at one place the last.

    Places count in the input that the pool would have had, [n, c, spatial...]; a given
    output_shape cuts that off or adds zeros behind.
    """
    x, places = node.input(0), node.input(1)
    rank = x.rank - 2
    strides = node.ints("strides") or [1] * rank
    pads = node.ints("pads") or [0] * (2 * rank)
    kernel = node.ints("kernel_shape")
    size = [
        (s - 1) * stride - low - high + k
        for s, stride, low, high, k in zip(
            x.shape[2:], strides, pads[:rank], pads[rank:], kernel, strict=True
        )
    ]
    whole = b.full((*x.shape[:2], *size), 0, x.dtype)
    check(b, node, places, range(whole.size))
    if x.size and whole.size:
        whole = scatter(b, x, places, whole)
    shape = node.output_shapes[0]
    if node.int(COUNTED) and node.optional(2) is not None:
        return corner(b, whole, shape)
    kept = [min(s, o) for s, o in zip(whole.shape, shape, strict=True)]
    cut = whole if tuple(kept) == whole.shape else b.slice(whole, [0] * x.rank, kept)
    return b.pad(cut, [0] * x.rank, [o - s for o, s in zip(shape, kept, strict=True)])


def scatter(b: Builder, x: Tensor, places: Tensor, into: Tensor) -> Tensor:
    """`into` with every element of x at its place in row-major order."""
    values = b.value(b.reshape(x, (x.size,)))
    targets = b.value(b.reshape(places, (x.size,)))
    flat = b.reshape(into, (into.size,))

    def step(i: ir.Value, carried: list[Tensor]) -> list[Tensor]:
        place = arith.index_cast(ir.IndexType.get(), tensor.extract(targets, [i]))
        place = arith.maxsi(arith.minsi(place, index(into.size - 1)), index(0))
        value = tensor.extract(values, [i])
        made = tensor.insert(value, b.value(carried[0]), [place])
        return [b.tensor(made, x.dtype)]

    return b.reshape(repeat(b, x.size, [flat], step)[0], into.shape)


def corner(b: Builder, x: Tensor, shape: Sequence[int]) -> Tensor:
    """The first elements along each axis, and zeros behind where x has no more."""
    source = b.value(x)

    def body() -> Scalar:
        at = [position(d) for d in range(x.rank)]
        inside = [p < n for p, n in zip(at, x.shape, strict=True)]
        near = [p.minimum(n - 1) for p, n in zip(at, x.shape, strict=True)]
        element = b.load(source, x.dtype, near)
        every = reduce(lambda one, other: one & other, inside)
        return select(every, element, constant(0, element.dtype))

    return map_generic(b, shape, x.dtype, [], body)


OPERATORS = {"MaxUnpool": max_unpool}
