"""nanoloom.binary: what the graph stage makes of products of signs
(graph/binary_products.py).

Pack takes a condition, a bool tensor, or numbers with the attributes compare, ONNX's
name of a comparison, and than, a number: eight of them along `axis` become the bits of
a byte, the first the lowest; bits behind the last are 0.  early: 1 where numbers are
compared by what makes them, which writes a byte for each, not a float.

BitMatMul takes a [..., m, k] and b [k, n] of such bytes, BitConvolution x [n, c, ...]
(or channels last) and w [f, c / groups, kernel...].  Then shift [] or [result..., f] of
int32 or int16, factor [] or [n] and offset [] or [n] (omitted: 0) of float32; for n, a
convolution has f.  Attribute times:

    float(shift - times * (bits that differ)) * factor + offset

The sums are exact.  With the attribute compare there is a third operand alone, limit,
of the shape of shift: the result is whether the bits that differ are as many.
"""

from __future__ import annotations

from math import prod

import numpy as np

from nanoloom.ir.mlir import ir, linalg
from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder, Map
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import BOOL, Scalar, from_index
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.builder.window import from_channels_last, to_channels_last
from nanoloom.linalg.products.convolution import contract, conv_window

BYTE = 8
UINT8, INT32 = np.dtype(np.uint8), np.dtype(np.int32)
COMPARISONS = {
    "Greater": (Scalar.__gt__, -np.inf),
    "GreaterOrEqual": (Scalar.__ge__, -np.inf),
    "Less": (Scalar.__lt__, np.inf),
    "LessOrEqual": (Scalar.__le__, np.inf),
}  # each with a number for which it does not hold


def pack(b: Builder, node: Node) -> Tensor:
    """Conditions as the bits of bytes."""
    x = node.input(0)
    axis, last = node.int("axis") % x.rank, x.rank - 1
    order = [*(d for d in range(x.rank) if d != axis), axis]
    turned = b.transpose(x, order) if axis != last else x
    made = packed(b, node, turned)
    if axis == last:
        return made
    return b.transpose(made, [order.index(d) for d in range(x.rank)])


def packed(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The same along the last dimension."""
    name, than = node.string("compare"), node.float("than")
    compare, never = COMPARISONS.get(name, (None, 0))
    if compare is not None and node.int("early", 0):
        holds = compare  # of a name that stays
        x = b.elementwise(lambda element: holds(element, than), x, dtype=BOOL)
        compare, never = None, 0
    *outer, count = x.shape
    low, high = [0] * x.rank, [0] * (x.rank - 1) + [-count % BYTE]
    whole = b.pad(x, low, high, never) if count % BYTE else x
    made = (*outer, -(-count // BYTE))
    split, depth = b.reshape(whole, (*made, BYTE)), x.rank

    def body(element: Scalar, sofar: Scalar) -> Scalar:
        holds = element if compare is None else compare(element, than)
        assert holds.dtype == BOOL, "conditions are packed"
        place = from_index(linalg.IndexOp(depth).result).cast(UINT8)
        return sofar | (holds.cast(UINT8) << place)

    identity = Map.get_identity(depth + 1)
    kept = [ir.AffineDimExpr.get(d) for d in range(depth)]
    return b.generic(
        [(split, identity)],
        [(b.full(made, 0, UINT8), Map.get(depth + 1, 0, kept))],
        [PARALLEL] * depth + [REDUCTION],
        body,
    )[0]


def differing(one: Scalar, other: Scalar) -> Scalar:
    """The number of bits that differ, int32."""
    return (one ^ other).math("ctpop").cast(INT32)


def matmul(b: Builder, node: Node) -> Tensor:
    """One contraction; all else is its elementwise epilogue."""
    x, w = node.input(0), node.input(1)
    *outer, depth = x.shape
    rows, columns = b.reshape(x, (prod(outer), depth)), w.shape[1]
    m, n, k = (ir.AffineDimExpr.get(d) for d in range(3))
    total = b.generic(
        [(rows, Map.get(3, 0, [m, k])), (w, Map.get(3, 0, [k, n]))],
        [(b.full((rows.shape[0], columns), 0, INT32), Map.get(3, 0, [m, n]))],
        [PARALLEL, PARALLEL, REDUCTION],
        lambda one, other, sofar: sofar + differing(one, other),
    )[0]
    return b.reshape(scaled(b, node, total), (*outer, columns))


def conv(b: Builder, node: Node) -> Tensor:
    """The same of a convolution: its filters are the columns."""
    x, w = node.input(0), node.input(1)
    window = conv_window(node, x, w)
    padded = window.pad(b, to_channels_last(b, node, x))
    groups = node.int("group", 1)
    total = contract(b, padded, w, window, groups, INT32, differing)
    return from_channels_last(b, node, scaled(b, node, total))


def scaled(b: Builder, node: Node, total: Tensor) -> Tensor:
    """The sums of products of signs, each column scaled, or compared."""
    compare, _ = COMPARISONS.get(node.string("compare"), (None, 0))
    if compare is not None:
        return b.elementwise(
            lambda ones, limit: compare(ones, limit.cast(INT32)),
            total,
            node.input(2),
            dtype=BOOL,
        )
    dtype, times = node.output_dtypes[0], node.int("times")
    shift, factor, offset = node.input(2), node.input(3), node.optional(4)

    def body(ones: Scalar, start: Scalar, by: Scalar, *added: Scalar) -> Scalar:
        value = (start.cast(INT32) - ones * times).cast(dtype) * by
        return value + added[0] if added else value

    given = [shift, factor, *([] if offset is None else [offset])]
    return b.elementwise(body, total, *given, dtype=dtype)


OPERATORS = {
    "nanoloom.binary.BitConvolution": conv,
    "nanoloom.binary.BitMatMul": matmul,
    "nanoloom.binary.Pack": pack,
}
