"""Convolutions of 8-bit integers with exact 32-bit sums: ConvInteger, QLinearConv.

The contraction multiplies the stored integers; x's zero point enters through the sum
of each filter's weights, a constant: sum (x - a) * w == sum x * w - a * sum w.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nanoloom.graph.nchw_int8_conv import FROM_PLANES
from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder, Map
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.tensor import Tensor, changed
from nanoloom.linalg.builder.window import Window, from_channels_last, to_channels_last
from nanoloom.linalg.products.convolution import contract, conv_window
from nanoloom.linalg.products.filter_zero_points import (
    ByteFilters,
    byte_filters,
    centered,
    is_zero,
    without_rest,
)
from nanoloom.linalg.products.integer_winograd import integer_winograd
from nanoloom.weights.derivations import Sum

INT32, FLOAT32 = np.dtype(np.int32), np.dtype(np.float32)
GROUP = 4  # numbers that a lane of 32 bits has at most
FEW = 16  # channels: of more, those that are missing in a group are a small part


def conv_integer(b: Builder, node: Node) -> Tensor:
    """ConvInteger: (x - zero point) convolved with (w - zero point), int32."""
    made = integer_sums(
        b, node, node.input(0), node.optional(2), node.input(1), node.optional(3)
    )
    return from_channels_last(b, node, made)


def qlinear_conv(b: Builder, node: Node) -> Tensor:
    """QLinearConv: the int32 sums with bias, scaled to y's quantization in f32."""
    x, x_scale, x_zero = (node.input(i) for i in range(3))
    w, w_scale, w_zero = (node.input(i) for i in range(3, 6))
    y_scale, y_zero = node.input(6), node.input(7)
    sums = integer_sums(b, node, x, x_zero, w, w_zero)
    bias = node.optional(8)
    if bias is not None:
        sums = b.elementwise(lambda s, c: s + c, sums, bias)
    scale = combined_scale(b, x_scale, w_scale, y_scale)
    low, high = int(np.iinfo(y_zero.dtype).min), int(np.iinfo(y_zero.dtype).max)

    def body(total: Scalar, by: Scalar, zero: Scalar) -> Scalar:
        scaled = (total.cast(FLOAT32) * by).math("roundeven") + zero.cast(FLOAT32)
        return scaled.maximum(low).minimum(high).cast(INT32).cast(y_zero.dtype)

    zero = b.reshape(y_zero, ())
    made = b.elementwise(body, sums, scale, zero, dtype=y_zero.dtype)
    return from_channels_last(b, node, made)


def combined_scale(b: Builder, x: Tensor, w: Tensor, y: Tensor) -> Tensor:
    """x * w / y in f32, a scalar or [f]; computed now where all are constants."""
    parts = [b.reshape(s, () if s.size == 1 else (s.size,)) for s in (x, w, y)]
    if all(s.is_constant for s in parts):
        one, other, result = (s.array() for s in parts)
        return b.constant(one * other / result)
    return b.elementwise(lambda one, other, result: one * other / result, *parts)


@dataclass(frozen=True)
class Parts:
    """sums [n, result..., f] of stored numbers, int32, wrapping as integers do.

    shift: what x's zero point adds to them, [f], None without one; where it is not
    known before, the zero point [] and each filter's sum of weights [f] are.
    """

    sums: Tensor
    shift: Tensor | None = None
    factors: tuple[Tensor, Tensor] | None = None

    def shifted(self, b: Builder) -> Tensor:
        """The sums of numbers without x's zero point."""
        if self.shift is not None:
            return b.elementwise(lambda s, c: s - c, self.sums, self.shift)
        if self.factors is None:
            return self.sums

        def body(total: Scalar, zero: Scalar, weight: Scalar) -> Scalar:
            return total - zero.cast(INT32) * weight

        return b.elementwise(body, self.sums, *self.factors)


def integer_sums(
    b: Builder,
    node: Node,
    x: Tensor,
    x_zero: Tensor | None,
    w: Tensor,
    w_zero: Tensor | None,
) -> Tensor:
    """[n, result..., f] in int32, wrapping as integers do."""
    return integer_parts(b, node, x, x_zero, w, w_zero).shifted(b)


def integer_parts(
    b: Builder,
    node: Node,
    x: Tensor,
    x_zero: Tensor | None,
    w: Tensor,
    w_zero: Tensor | None,
) -> Parts:
    """The same, what x's zero point adds apart."""
    window, last = conv_window(node, x, w), to_channels_last(b, node, x)
    if not node.int("winograd"):
        window, w = window.within(), window.filters(b, w)
    weights, groups = centered(b, w, w_zero), node.int("group", 1)
    if tile := node.int("winograd"):
        around = 0 if x_zero is None else int(x_zero.array().reshape(()))
        sums = integer_winograd(b, last, around, weights, window, tile, groups)
    elif w.shape[1] == 1 and groups > 1:  # channel by channel, in any width
        padded = pad_with(b, last, x_zero, window)
        sums = contract(b, padded, weights, window, groups, INT32)
    else:
        if node.int(FROM_PLANES):
            last, window = x, replace(window, in_planes=True)
        filters = byte_filters(b, w, w_zero, groups)
        sums = dense_sums(b, last, x_zero, filters, window)
    if x_zero is None or is_zero(x_zero):
        return Parts(sums)
    if weights.is_constant and x_zero.is_constant:
        zero = int(x_zero.array().reshape(()))
        return Parts(sums, filter_sums(b, weights, zero))
    return Parts(sums, None, (b.reshape(x_zero, ()), filter_sums(b, weights)))


def dense_sums(
    b: Builder, x: Tensor, x_zero: Tensor | None, filters: ByteFilters, window: Window
) -> Tensor:
    """Products of bytes, each filter's over its group's channels, in int32."""
    read = in_groups(window) if window.in_planes else window
    x, w = pad_with(b, x, x_zero, read), filters.stored
    if window.in_planes:
        sums = contract_planes(b, x, w, read)
    elif filters.groups == 1 and in_rows(window, w.shape[1]):
        sums = contract_rows(b, x, w, window)
    else:
        sums = contract(b, x, w, window, filters.groups, INT32)
    return without_rest(b, sums, filters, x, window)


def in_rows(window: Window, channels: int) -> bool:
    """Whether the channels of neighbouring taps are summed as if they were one axis.

    Products are made in groups, which a few channels alone do not fill.
    """
    several = window.kernel[-1] > 1 and window.dilations[-1] == 1 < window.size[-1]
    return several and channels % GROUP > 0 and channels < FEW


def contract_rows(b: Builder, x: Tensor, w: Tensor, window: Window) -> Tensor:
    """A contraction over rows of taps with their channels, which lie side by side.

        y[n, o..., f] = sum over k..., t of x[n, o * stride + k..., stride c o' + t] *
                        w[f, k..., t]

    x: [n, spatial..., c], padded.  w: [f, c, kernel...].  Result: as of `contract`.
    """
    n, *size, channels = x.shape
    features, rank = w.shape[0], window.rank
    x = b.reshape(x, (n, *size[:-1], size[-1] * channels))
    w = b.transpose(w, [0, *range(2, w.rank), 1])
    w = b.reshape(w, (*w.shape[:rank], w.shape[rank] * channels))
    out = b.full((n, *window.result, features), 0, INT32)
    at = [ir.AffineDimExpr.get(d) for d in range(out.rank + rank)]
    *outer, _ = window.taps(1, out.rank)
    along = at[rank] * (window.strides[-1] * channels) + at[-1]
    return summed(b, x, [at[0], *outer, along], w, out)


def summed(
    b: Builder, x: Tensor, x_map: list[ir.AffineExpr], w: Tensor, out: Tensor
) -> Tensor:
    """Sums of products, one for each filter; w: [f, ...], as the sums go through it."""
    free, count = out.rank, out.rank + w.rank - 1
    at = [ir.AffineDimExpr.get(d) for d in range(count)]

    def body(element: Scalar, weight: Scalar, total: Scalar) -> Scalar:
        return total + element.cast(INT32) * weight.cast(INT32)

    (made,) = b.generic(
        [(x, Map.get(count, 0, x_map)), (w, Map.get(count, 0, at[free - 1 :]))],
        [(out, Map.get(count, 0, at[:free]))],
        [PARALLEL] * free + [REDUCTION] * (count - free),
        body,
    )
    return made


def in_groups(window: Window) -> Window:
    """The windows over planes, of whole groups of pixels in a row."""
    *above, taps = window.kernel
    whole = -(-taps // GROUP) * GROUP
    return replace(window, kernel=(*above, whole), in_planes=True)


def contract_planes(b: Builder, x: Tensor, w: Tensor, window: Window) -> Tensor:
    """A contraction over groups of pixels in a row of one channel.

        y[n, o..., f] = sum over k..., g, c, t of
            x[n, c, o * stride + k..., stride o' + 4 g + t] * w[f, c, k..., 4 g + t]

    Channel after channel: the next group of a row may be the first one of another
    pixel, which would be kept in a register for it.  x: [n, c, spatial...], padded.  w:
    [f, c, kernel...], known; zeros are put behind its rows.  Result: as of `contract`.
    """
    (features, channels, *above, taps), rank = w.shape, w.rank
    groups = window.kernel[-1] // GROUP
    behind = [(0, 0)] * (rank - 1) + [(0, window.kernel[-1] - taps)]
    whole = np.pad(w.array(), behind).reshape(features, channels, *above, groups, GROUP)
    w = b.transpose(b.constant(whole), [0, *range(2, rank), 1, rank])
    out = b.full((x.shape[0], *window.result, features), 0, INT32)
    at = [ir.AffineDimExpr.get(d) for d in range(out.rank + rank)]
    *outer, _ = window.taps(1, out.rank)
    group, channel, number = at[-3:]
    row = at[window.rank] * window.strides[-1] + group * GROUP + number
    return summed(b, x, [at[0], channel, *outer, row], w, out)


def pad_with(b: Builder, x: Tensor, zero: Tensor | None, window: Window) -> Tensor:
    """Padding stands for the number zero, which x's zero point stores."""
    if zero is None:
        return window.pad(b, x)
    if zero.is_constant:
        return window.pad(b, x, zero.array().reshape(-1)[0].item())
    x, number = window.cut(b, x), b.reshape(zero, (1,) * x.rank)
    low, high = window.margins()
    if is_given(b, x) and x.shape[1 if window.in_planes else -1] == 1:
        shape = [sum(sizes) for sizes in zip(low, x.shape, high, strict=True)]
        around = b.broadcast_to(number, shape)
        return x if around.shape == x.shape else b.insert(x, around, low)
    for axis, wide in enumerate(zip(low, high, strict=True)):
        sizes = [(*x.shape[:axis], n, *x.shape[axis + 1 :]) for n in wide]
        front, behind = ([b.broadcast_to(number, s)] if s[axis] else [] for s in sizes)
        x = b.concat([*front, x, *behind], axis)
    return x


def is_given(b: Builder, x: Tensor) -> bool:
    """Whether a tensor is the model's own, whatever its order: nothing makes it."""
    owner = b.value(x).owner
    while not isinstance(owner, ir.Block) and moves(owner):
        owner = owner.operands[0].owner
    return isinstance(owner, ir.Block)


def moves(op: ir.Operation) -> bool:
    """Whether an operation gives what it takes, or a part, in any order or shape."""
    if op.name != "linalg.generic":
        views = "expand_shape", "collapse_shape", "extract_slice"
        return op.name in [f"tensor.{view}" for view in views]
    return len(op.regions[0].blocks[0].operations) == 1


def filter_sums(b: Builder, w: Tensor, times: int = 1) -> Tensor:
    """The sum of each filter's weights, int32 [f]; computed now for constants."""
    axes = tuple(range(1, w.rank))
    if w.is_constant:
        return changed(w, Sum(axes, times))
    return b.reduce(lambda s, x: s + x, b.cast(w, INT32), axes, 0, keepdims=False)


OPERATORS = {"ConvInteger": conv_integer, "QLinearConv": qlinear_conv}
