"""BatchNormalization, and LRN across neighbouring channels."""

from __future__ import annotations

from collections.abc import Sequence

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
from nanoloom.linalg.builder.placed_operands import (
    BroadcastOperand,
    along_axis,
    combine,
)
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.builder.window import channels_first
from nanoloom.linalg.builder.window_taps import Taps
from nanoloom.linalg.reductions.normalization import moments


def channel(node: Node, x: Tensor, full: Tensor) -> BroadcastOperand:
    """A vector over channels: dimension 1 (or the only one), or the last one.

    With spatial = 0, of version 7, it is one element for each of an image.
    """
    if not node.int("spatial", 1):
        return BroadcastOperand(x, tuple(range(1, full.rank)))
    return along_axis(x, min(1 if channels_first(node) else full.rank, full.rank - 1))


def batch_norm(b: Builder, node: Node) -> Sequence[Tensor | None]:
    """(x - mean) * (scale / sqrt(variance + epsilon)) + bias, channel by channel."""
    if node.version >= 14 and node.int("training_mode"):
        return batch_norm_training(b, node)
    if node.version < 7 and not node.int("is_test"):
        raise node.unsupported("it is in training mode", "set is_test = 1")
    return [normalized(b, node, node.input(3), node.input(4))]


def normalized(b: Builder, node: Node, mean: Tensor, variance: Tensor) -> Tensor:
    x, scale, bias = node.input(0), node.input(1), node.input(2)
    factor = channel_factor(b, scale, variance, node.float("epsilon", 1e-5))
    wide = computed_as(x.dtype)

    def body(s: Scalar, m: Scalar, f: Scalar, c: Scalar) -> Scalar:
        return (s - m.cast(wide)) * f.cast(wide) + c.cast(wide)

    vectors = [channel(node, v, x) for v in (mean, factor, bias)]
    return combine(b, body, x.shape, node.output_dtypes[0], x, *vectors)


def channel_factor(
    b: Builder, scale: Tensor, variance: Tensor, epsilon: float
) -> Tensor:
    """scale / sqrt(variance + epsilon), in the type the normalization computes in."""
    wide = np.result_type(computed_as(scale.dtype), computed_as(variance.dtype))
    if scale.is_constant and variance.is_constant:
        exact = scale.array().astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            exact = exact / np.sqrt(variance.array().astype(np.float64) + epsilon)
        return b.constant(exact.astype(wide))

    def body(s: Scalar, v: Scalar) -> Scalar:
        return s.cast(wide) / (v.cast(wide) + epsilon).math("sqrt")

    return b.elementwise(body, scale, variance, dtype=wide)


def batch_norm_training(b: Builder, node: Node) -> Sequence[Tensor | None]:
    """Statistics of this batch, and the running ones moved towards them."""
    x, mean, variance = node.input(0), node.input(3), node.input(4)
    axes = [d for d in range(x.rank) if d != 1]
    m = moments(b, x, axes)
    share, momentum = 1 / max(m.count, 1), node.float("momentum", 0.9)
    batch = [b.elementwise(lambda s: s * share, t) for t in (m.total, m.squares.tensor)]
    results: list[Tensor | None] = [normalized(b, node, batch[0], batch[1])]
    for i, (running, now) in enumerate(zip((mean, variance), batch, strict=True), 1):
        if i >= len(node.wanted) or not node.wanted[i]:
            results.append(None)
            continue
        wide = now.dtype

        def body(old: Scalar, new: Scalar, wide: np.dtype = wide) -> Scalar:
            return old.cast(wide) * momentum + new * (1 - momentum)

        moved = b.elementwise(body, running, now, dtype=wide)
        results.append(b.cast(moved, node.output_dtypes[i]))
    return results


def lrn(b: Builder, node: Node) -> Tensor:
    """x / (bias + alpha / size * squares)^beta, squares of `size` neighbours summed."""
    x, size, taps = node.input(0), node.int("size"), neighbours(node)
    wide, rank = computed_as(x.dtype), x.rank
    low = [taps.begin if d == 1 else 0 for d in range(rank)]
    high = [taps.behind if d == 1 else 0 for d in range(rank)]
    padded = b.pad(x, low, high)
    places = [ir.AffineDimExpr.get(d) for d in range(rank)]
    window = ir.AffineDimExpr.get(rank)
    shifted = [p + window if d == 1 else p for d, p in enumerate(places)]
    extent = Tensor((taps.count,), wide, b.empty((taps.count,), wide))
    squares = b.generic(
        [
            (padded, Map.get(rank + 1, 0, shifted)),
            (extent, Map.get(rank + 1, 0, [window])),  # says how far the window goes
        ],
        [(b.full(x.shape, 0, wide), Map.get(rank + 1, 0, places))],
        [PARALLEL] * rank + [REDUCTION],
        lambda s, _, sofar: sofar + s * s,
    )[0]
    alpha, beta = node.float("alpha", 1e-4), node.float("beta", 0.75)
    bias = node.float("bias", 1.0)

    def body(s: Scalar, total: Scalar) -> Scalar:
        return s / (total * (alpha / size) + bias).math("powf", beta)

    return combine(b, body, x.shape, node.output_dtypes[0], x, squares)


def neighbours(node: Node) -> Taps:
    """Which channels next to each are summed, without those that are none."""
    channels, size = node.input(0).shape[1], node.int("size")
    taps = Taps(channels, channels, 1, 1, (size - 1) // 2, 0, size - 1)
    return taps.within() if channels else taps


OPERATORS = {"BatchNormalization": batch_norm, "LRN": lrn}
