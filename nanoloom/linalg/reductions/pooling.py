"""Pools on channels-last tensors, or in planes: each one reduction over the windows.

The window's extents come from an operand of that shape whose elements nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import (
    PARALLEL,
    REDUCTION,
    Builder,
    Map,
    computed_as,
)
from nanoloom.linalg.builder.indexing import INT64, position
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Number, Scalar, is_float, select
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.builder.window import (
    Window,
    channels_first,
    from_channels_last,
    spatial_size,
    to_channels_last,
    window_of,
)
from nanoloom.linalg.reductions.reduce import lowest
from nanoloom.linalg.reductions.window_counts import (
    computed_counts,
    element_counts,
    is_counted,
    with_padding,
)

# Taps that take as long as writing what is between two windows, and reading it.
BETWEEN = 3


def pool_window(node: Node) -> Window:
    return window_of(node, spatial_size(node, node.input(0)), node.ints("kernel_shape"))


def pool(
    b: Builder,
    x: Tensor,
    window: Window,
    start: Number,
    fold: Callable[[Scalar, Scalar], Scalar],
) -> Tensor:
    """fold(so far, element) over each window of a padded tensor.

    The result is in the type that x is computed in: f32 for f16 and bf16.
    """
    wide, (outputs, maps) = computed_as(x.dtype), window_loops(window)
    channels = x.shape[1 if window.in_planes else -1]
    out = b.full(window.around(x.shape[0], channels, window.result), start, wide)
    return b.generic(
        [(x, maps[0]), (shape_only(b, window, x.dtype), maps[1])],
        [(out, maps[2])],
        [PARALLEL] * outputs + [REDUCTION] * window.rank,
        lambda element, _, total: fold(total, element),
    )[0]


def window_loops(
    window: Window,
) -> tuple[int, tuple[ir.AffineMap, ir.AffineMap, ir.AffineMap]]:
    """Loops (n, result..., c; kernel...): the parallel ones; maps of x, kernel, y.

    The channels' is in front of the result's in planes.
    """
    free = window.rank + 2
    count = free + window.rank
    at = [ir.AffineDimExpr.get(d) for d in range(count)]
    if window.in_planes:
        places = [at[0], at[1], *window.taps(2, free)]
    else:
        places = [at[0], *window.taps(1, free), at[free - 1]]
    x_map = Map.get(count, 0, places)
    kernel_map = Map.get(count, 0, at[free:])
    return free, (x_map, kernel_map, Map.get(count, 0, at[:free]))


def shape_only(b: Builder, window: Window, dtype: np.dtype) -> Tensor:
    """An operand that tells the window's extents."""
    return Tensor(window.kernel, dtype, b.empty(window.kernel, dtype))


def max_pool(b: Builder, node: Node) -> list[Tensor | None]:
    """MaxPool; the second output, if asked for, holds places in the input."""
    x, window = node.input(0), pool_window(node).within()
    made, least = to_channels_last(b, node, x), lowest(x.dtype)
    if len(node.wanted) > 1 and node.wanted[1]:
        pair = pool_with_places(b, node, window.pad(b, made, least), window)
        return [from_channels_last(b, node, y) for y in pair]
    for part in parts_of(window):
        padded = part.pad(b, made, least)
        made = pool(b, padded, part, least, lambda s, x: s.maximum(x))
    return [from_channels_last(b, node, b.cast(made, x.dtype))]


def parts_of(window: Window) -> list[Window]:
    """Windows one behind the other that give the same as a window, in fewer taps.

    Along one axis each, of which the last is first: a sum or maximum over 5 x 5 is one
    over 5 of those over 5.  What is between is written and read once more; of a single
    window nothing is shared.
    """
    parts, apart = [], 0
    for axis in reversed(range(window.rank)):
        part = window.along(axis)
        apart += (part.kernel[axis] + BETWEEN) * prod(window.strides[:axis])
        parts.append(part)
    fewer = apart < prod(window.kernel) + BETWEEN
    return parts if fewer and max(window.result) > 1 else [window]


def pool_with_places(
    b: Builder, node: Node, x: Tensor, window: Window
) -> tuple[Tensor, Tensor]:
    """The largest elements and their places in the unpadded [n, c, spatial...] input.

    The first of equal elements counts; a NaN counts as largest.
    """
    free, (x_map, kernel_map, y_map) = window_loops(window)
    shape = (x.shape[0], *window.result, x.shape[-1])
    best = b.full(shape, lowest(x.dtype), x.dtype)
    place = b.full(shape, -1, INT64)
    column_major = bool(node.int("storage_order"))

    def body(element: Scalar, _: Scalar, top: Scalar, at: Scalar) -> list[Scalar]:
        inside, here = place_of(window, free, x.shape[-1], column_major)
        better = element > top
        if is_float(x.dtype):
            better = better | (element.is_nan() & ~top.is_nan())
        take = inside & (better | (at < 0))
        return [select(take, element, top), select(take, here, at)]

    found = b.generic(
        [(x, x_map), (shape_only(b, window, x.dtype), kernel_map)],
        [(best, y_map), (place, y_map)],
        [PARALLEL] * free + [REDUCTION] * window.rank,
        body,
    )
    return found[0], found[1]


def place_of(
    window: Window, free: int, channels: int, column_major: bool
) -> tuple[Scalar, Scalar]:
    """Whether the current tap is in the input, and its place there as one number."""
    inside, places = None, list[Scalar]()
    for i in range(window.rank):
        at = position(1 + i) * window.strides[i] - window.low[i]
        at = at + position(free + i) * window.dilations[i]
        here = (at >= 0) & (at < window.size[i])
        inside = here if inside is None else inside & here
        places.append(at)
    assert inside is not None
    total = position(0) * channels + position(free - 1)
    total = total * prod(window.size)
    order = range(window.rank)
    step = 1
    for i in order if column_major else reversed(order):
        total, step = total + places[i] * step, step * window.size[i]
    return inside, total


def average_pool(b: Builder, node: Node) -> Tensor:
    """AveragePool: a sum, divided by the number of elements that count.

    Taps that meet the border alone may count, and are not read.
    """
    x, window = node.input(0), pool_window(node)
    total = summed(b, to_channels_last(b, node, x), window.within())
    divisor = divisors(b, node, window, total.dtype)
    made = b.elementwise(lambda s, c: s / c, total, divisor, dtype=x.dtype)
    return from_channels_last(b, node, made)


def summed(
    b: Builder,
    x: Tensor,
    window: Window,
    prepare: Callable[[Scalar], Scalar] = lambda x: x,
) -> Tensor:
    """The sum of each window, of what is prepared of its elements."""
    parts = parts_of(window)
    padded = window.pad(b, x)
    if len(parts) == 1:
        return pool(b, padded, window, 0, lambda s, x: s + prepare(x))
    # No border is around what the first one makes: sums would be joined over it.
    none = (0,) * window.rank
    spatial = padded.shape[2:] if window.in_planes else padded.shape[1:-1]
    first, *others = parts_of(replace(window, low=none, high=none, size=spatial))
    made = pool(b, padded, first, 0, lambda s, x: s + prepare(x))
    for part in others:
        made = pool(b, made, part, 0, lambda s, x: s + x)
    return made


def divisors(b: Builder, node: Node, window: Window, dtype: np.dtype) -> Tensor:
    """What sums of windows are divided by: [result..., 1], [result...] in planes."""
    if is_counted(node, window):
        made = computed_counts(b, window, dtype, with_padding(node))
        shape = window.result if window.in_planes else (*window.result, 1)
        return b.reshape(made, shape)
    counts = element_counts(window, with_padding(node))
    if counts.size and (counts == counts.flat[0]).all():
        counts = counts.reshape(-1)[:1]
    elif not window.in_planes:
        counts = counts.reshape((*counts.shape, 1))
    return b.constant(counts, dtype)


def lp_pool(b: Builder, node: Node) -> Tensor:
    """LpPool: the p-norm of each window."""
    x, window, p = node.input(0), pool_window(node).within(), norm_of(node)
    total = summed(b, to_channels_last(b, node, x), window, lambda x: power(x, p))
    made = b.elementwise(lambda s: root(s, p), total, dtype=x.dtype)
    return from_channels_last(b, node, made)


def norm_of(node: Node) -> float:
    """Which norm: an integer since version 2, any number before."""
    return node.int("p", 2) if node.version >= 2 else node.float("p", 2.0)


def power(x: Scalar, p: float) -> Scalar:
    """abs(x) to the power p."""
    if p == 2:
        return x * x
    size = x.absolute()
    return size if p == 1 else size.math("powf", p)


def root(x: Scalar, p: float) -> Scalar:
    """The p-th root of x >= 0."""
    if p == 2:
        return x.math("sqrt")
    return x if p == 1 else x.math("powf", 1.0 / p)


def spatial_axes(node: Node, x: Tensor) -> list[int]:
    first = 2 if channels_first(node) else 1
    return list(range(first, first + x.rank - 2))


def global_average_pool(b: Builder, node: Node) -> Tensor:
    x = node.input(0)
    wide, axes = computed_as(x.dtype), spatial_axes(node, x)
    total = b.reduce(lambda s, x: s + x, x, axes, 0, dtype=wide)
    count = prod(x.shape[d] for d in axes)
    return b.elementwise(lambda s: s / count, total, dtype=x.dtype)


def global_max_pool(b: Builder, node: Node) -> Tensor:
    x = node.input(0)
    axes = spatial_axes(node, x)
    return b.reduce(lambda s, x: s.maximum(x), x, axes, lowest(x.dtype))


def global_lp_pool(b: Builder, node: Node) -> Tensor:
    x, p = node.input(0), norm_of(node)
    wide, axes = computed_as(x.dtype), spatial_axes(node, x)
    total = b.reduce(
        lambda s, x: s + x, x, axes, 0, dtype=wide, prepare=lambda x: power(x, p)
    )
    return b.elementwise(lambda s: root(s, p), total, dtype=x.dtype)


OPERATORS = {
    "AveragePool": average_pool,
    "GlobalAveragePool": global_average_pool,
    "GlobalLpPool": global_lp_pool,
    "GlobalMaxPool": global_max_pool,
    "LpPool": lp_pool,
    "MaxPool": max_pool,
}
