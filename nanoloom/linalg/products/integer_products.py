"""nanoloom.integer: what the graph stage makes of quantized products and convolutions.

MatMul takes a [..., m, k] and b [..., k, n] of 8 bits, Convolution x [n, c, ...] (or
channels last) and w [f, c / groups, kernel...].  Then a_zero [] and b_zero [] or [n]
(or omitted: 0), factor and offset [] or [n] (offset omitted: 0), y_zero [] (omitted:
0); for n, a convolution has f.  Output of 8 bits, factor and offset float64:

    saturate(round((sum (a - a_zero) (b - b_zero) + offset) * factor) + y_zero)

Attribute relu: what is rounded is at least 0; fused: the target multiplies and adds
with one rounding, so that the same may be made in f32 (single.py).  Output, factor and
offset float32: sum ... * factor + offset, as it is.  The sums are exact, for the graph
stage keeps them small enough.
"""

from __future__ import annotations

from math import prod

import numpy as np

from nanoloom.graph.integer_products import FUSED
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.f32_requantization import to_f32_scale
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.placed_operands import BroadcastOperand, combine
from nanoloom.linalg.builder.requantization import SINGLE_MOST, Requantization
from nanoloom.linalg.builder.scalar import Scalar, is_float
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.builder.window import from_channels_last
from nanoloom.linalg.products.integer_convolution import integer_parts
from nanoloom.linalg.products.integer_matmul import by_column, sums

WIDEST = 255**2  # of one product
DEEP = 256  # sums of more products: what follows them takes no time beside them


def matmul(b: Builder, node: Node) -> Tensor:
    """One contraction of 8-bit integers; all else is its elementwise epilogue."""
    x, y = node.input(0), node.input(1)
    total = sums(b, x, y, node.optional(2), node.optional(3))
    given = [by_column(b, t, x, total.rank) for t in terms(node)]
    return requantized(b, node, total, x.shape[-1], given)


def conv(b: Builder, node: Node) -> Tensor:
    """The same of a convolution: its filters are the columns."""
    x, w = node.input(0), node.input(1)
    parts = integer_parts(b, node, x, node.optional(2), w, node.optional(3))
    total, given = parts.sums, terms(node)
    if is_float(node.output_dtypes[0]) or parts.shift is None:
        total = parts.shifted(b)
    else:  # one addition for both
        given = [given[0], moved(b, parts.shift, *given[1:])]
    places = (total.rank - 1,)
    placed = [
        BroadcastOperand(b.reshape(t, ()), ())
        if t.size == 1
        else BroadcastOperand(t, places)
        for t in given
    ]
    made = requantized(b, node, total, prod(w.shape[1:]), placed)
    return from_channels_last(b, node, made)


def moved(b: Builder, shift: Tensor, *offset: Tensor) -> Tensor:
    """What is added to sums that `shift` is not taken from yet."""
    before = sum(t.array() for t in offset)
    return b.constant(before - shift.array().astype(np.float64))


def terms(node: Node) -> list[Tensor]:
    """The factor of the sums, and the offset where there is one."""
    return [t for t in (node.input(4), node.optional(5)) if t is not None]


def requantized(
    b: Builder, node: Node, total: Tensor, depth: int, given: list[BroadcastOperand]
) -> Tensor:
    """What follows the sums, of so many products each."""
    dtype, zero = node.output_dtypes[0], node.optional(6)
    if is_float(dtype):

        def scaled(s: Scalar, by: Scalar, *offset: Scalar) -> Scalar:
            value = s.cast(dtype) * by
            return value + offset[0] if offset else value

        return combine(b, scaled, total.shape, dtype, total, *given)
    start = 0 if zero is None else int(zero.array())
    most = largest(depth, *(x.tensor for x in given))
    made = Requantization(dtype, start, bool(node.int("relu")), most)
    single = in_f32(b, made, given, depth) if node.int(FUSED) else None
    if single is not None:
        return combine(b, made.in_f32, total.shape, dtype, total, *single)
    return combine(b, made.of, total.shape, dtype, total, *given)


def in_f32(
    b: Builder, made: Requantization, given: list[BroadcastOperand], depth: int
) -> list[BroadcastOperand] | None:
    """Factor and offset in f32 that give the same results, if there are any."""
    if made.largest > SINGLE_MOST or depth > DEEP:
        return None
    longest = max(given, key=lambda x: x.tensor.size)
    factor, *offset = (x.tensor.array().reshape(-1) for x in given)
    shape = (longest.tensor.size,)
    added = sum(offset, np.zeros(1))
    scale = np.broadcast_to(factor, shape), np.broadcast_to(added, shape)
    found = to_f32_scale(*scale, *made.limits, depth * WIDEST)
    if found is None:
        return None
    kept = [found.factors, found.offsets]
    for pair in zip(found.wrong, found.own, strict=True):
        kept += pair
    shape = longest.tensor.shape
    return [BroadcastOperand(b.constant(x.reshape(shape)), longest.dims) for x in kept]


def largest(depth: int, factor: Tensor, *offset: Tensor) -> float:
    """What the scaled sums are at most, without their sign."""
    sums = float(depth * WIDEST) + sum(abs(t.array()).max() for t in offset)
    return float(sums * abs(factor.array()).max())


OPERATORS = {"nanoloom.integer.Convolution": conv, "nanoloom.integer.MatMul": matmul}
