"""Convolutions on channels-last tensors, each one contraction.

    y[n, o..., f] = sum over k..., c of
                    x[n, o * stride + k * dilation..., c] * w[f, c, k...]

Groups are one more parallel dimension; where a group has one channel (depthwise), the
dimensions of extent 1 are left out, so that the loops run over (n, o..., c; k...).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import (
    PARALLEL,
    REDUCTION,
    Builder,
    Map,
    computed_as,
)
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.builder.window import (
    Window,
    from_channels_last,
    spatial_size,
    to_channels_last,
    window_of,
)
from nanoloom.linalg.products.winograd import winograd

Multiplied = Callable[[Scalar, Scalar], Scalar]


def conv(b: Builder, node: Node) -> Tensor:
    """Conv in 1, 2, 3 ... spatial dimensions, with groups and bias."""
    x, w = node.input(0), node.input(1)
    window = conv_window(node, x, w)
    last = to_channels_last(b, node, x)
    if tile := node.int("winograd"):
        groups, bias = node.int("group", 1), node.optional(2)
        made = winograd(b, last, w, window, tile, bias, groups)
        return from_channels_last(b, node, made)
    window, w = window.within(), window.filters(b, w)
    if window.in_planes:
        result = in_planes(b, window.pad(b, x), w, window)
        return add_bias(b, result, bias_of(b, node, window), x.dtype)
    result = contract(b, window.pad(b, last), w, window, node.int("group", 1))
    made = add_bias(b, result, node.optional(2), x.dtype)
    return from_channels_last(b, node, made)


def in_planes(b: Builder, x: Tensor, w: Tensor, window: Window) -> Tensor:
    """The contraction with a filter for each channel, channels first, padded.

    x: [n, c, spatial...].  w: [c, 1, kernel...].  The result is in the type that x is
    computed in.
    """
    n, channels, *_ = x.shape
    wide, free = computed_as(x.dtype), 2 + window.rank
    count = free + window.rank
    at = [ir.AffineDimExpr.get(d) for d in range(count)]
    x_map = [at[0], at[1], *window.taps(2, free)]
    out = b.full((n, channels, *window.result), 0, wide)
    return b.generic(
        [
            (x, Map.get(count, 0, x_map)),
            (
                b.reshape(w, (channels, *window.kernel)),
                Map.get(count, 0, [at[1], *at[free:]]),
            ),
        ],
        [(out, Map.get(count, 0, at[:free]))],
        [PARALLEL] * free + [REDUCTION] * window.rank,
        lambda element, weight, total: total + element.cast(wide) * weight.cast(wide),
    )[0]


def bias_of(b: Builder, node: Node, window: Window) -> Tensor | None:
    """The bias of each channel, as it is added to planes."""
    bias = node.optional(2)
    if bias is None:
        return None
    return b.reshape(bias, (bias.shape[0], *[1] * window.rank))


def conv_window(node: Node, x: Tensor, w: Tensor) -> Window:
    """The windows of a convolution with weights [f, c / groups, kernel...]."""
    return window_of(node, spatial_size(node, x), w.shape[2:])


def contract(
    b: Builder,
    x: Tensor,
    w: Tensor,
    window: Window,
    groups: int = 1,
    dtype: np.dtype | None = None,
    multiplied: Multiplied | None = None,
) -> Tensor:
    """The contraction alone: no padding, no bias, no change of layout.

    x: [n, spatial..., c], padded.  w: [f, c / groups, kernel...].
    Result: [n, result..., f] of `dtype` (default what x is computed in; products are
    made in it, so int8 with dtype int32 is exact).  multiplied: another product.
    """
    wide = dtype or computed_as(x.dtype)
    product = multiplied or (lambda one, other: one.cast(wide) * other.cast(wide))
    rank, (n, *size, channels), features = window.rank, x.shape, w.shape[0]
    group, feature, part = channel_dims(groups, features // groups, channels // groups)
    x = b.reshape(x, (n, *size, *group, *part))
    w = b.reshape(w, (*group, *feature, *part, *window.kernel))
    channels_last = not part  # vectors run along channels: no sum over any
    if channels_last:
        outer_rank = len(group) + len(feature)
        order = [*range(outer_rank, outer_rank + rank), *range(outer_rank)]
        w = b.transpose(w, order)
    out = b.full((n, *window.result, *group, *feature), 0, wide)
    free, window_at = out.rank, out.rank
    last = window_at + rank
    count = last + len(part)
    at = [ir.AffineDimExpr.get(d) for d in range(count)]
    outer, inner = at[1 + rank : free], at[last:]
    x_map = [at[0], *window.taps(1, window_at), *outer[: len(group)], *inner]
    taps = at[window_at:last]
    w_map = [*taps, *outer] if channels_last else [*outer, *inner, *taps]

    def body(element: Scalar, weight: Scalar, total: Scalar) -> Scalar:
        return total + product(element, weight)

    result = b.generic(
        [(x, Map.get(count, 0, x_map)), (w, Map.get(count, 0, w_map))],
        [(out, Map.get(count, 0, at[:free]))],
        [PARALLEL] * free + [REDUCTION] * (count - free),
        body,
    )[0]
    return b.reshape(result, (n, *window.result, features))


def channel_dims(
    groups: int, made: int, parts: int
) -> tuple[list[int], list[int], list[int]]:
    """The dimensions group, result and input channel of a group, as far as they are.

    One group is no dimension; in several groups, channels that are single are none.
    """
    if groups == 1:
        return [], [made], [parts]
    return [groups], [made] * (made != 1), [parts] * (parts != 1)


def add_bias(b: Builder, x: Tensor, bias: Tensor | None, dtype: np.dtype) -> Tensor:
    """x + bias, rounded to `dtype` once."""
    if bias is None:
        return b.cast(x, dtype)
    return b.elementwise(lambda s, c: s + c, x, bias, dtype=dtype)


OPERATORS = {"Conv": conv}
