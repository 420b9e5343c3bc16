"""Normalizations over dimensions of one tensor: mean, deviation, mean square, scaling.

The steps are generics in the input's own shape, so that each can be fused with what
stands before and behind; only the last one touches scale and bias.  f16 and bf16 stay
f32 until the result is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nanoloom.linalg.builder.builder import Builder, computed_as
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.placed_operands import (
    BroadcastOperand,
    along_axis,
    combine,
)
from nanoloom.linalg.builder.scalar import Scalar, select
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.reductions.reduce import add, count_of

Finish = Callable[..., Scalar]


@dataclass(frozen=True)
class Moments:
    """x - mean, the sums over the axes, and how a consumer reads those sums."""

    total: Tensor
    deviation: Tensor
    squares: BroadcastOperand
    count: int

    def inverse(self, squares: Scalar, epsilon: float) -> Scalar:
        """1 / sqrt(variance + epsilon)."""
        return (squares * (1 / max(self.count, 1)) + epsilon).math("rsqrt")


def sum_over(
    b: Builder, x: Tensor, axes: Sequence[int], *, squared: bool = False
) -> BroadcastOperand:
    """The sum of the elements or of their squares, in f32 for f16 and bf16."""
    found = b.reduce(
        add,
        x,
        axes,
        0,
        keepdims=False,
        dtype=computed_as(x.dtype),
        prepare=(lambda s: s * s) if squared else lambda s: s,
    )
    return BroadcastOperand(found, tuple(d for d in range(x.rank) if d not in axes))


def moments(b: Builder, x: Tensor, axes: Sequence[int]) -> Moments:
    count = count_of(x, axes)
    total = sum_over(b, x, axes)
    share = 1 / max(count, 1)
    deviation = combine(
        b, lambda s, t: s - t * share, x.shape, computed_as(x.dtype), x, total
    )
    squares = sum_over(b, deviation, axes, squared=True)
    return Moments(total.tensor, deviation, squares, count)


def scaled(
    b: Builder,
    m: Moments,
    dtype: np.dtype,
    epsilon: float,
    scale: BroadcastOperand | None,
    bias: BroadcastOperand | None,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, in one generic."""
    wide = m.deviation.dtype
    given = [p for p in (scale, bias) if p is not None]

    def body(deviation: Scalar, squares: Scalar, *rest: Scalar) -> Scalar:
        result = deviation * m.inverse(squares, epsilon)
        if scale is not None:
            result = result * rest[0].cast(wide)
        return result if bias is None else result + rest[-1].cast(wide)

    return combine(b, body, m.deviation.shape, dtype, m.deviation, m.squares, *given)


def layer_norm(b: Builder, node: Node) -> Sequence[Tensor | None]:
    """Normalized over the dimensions from `axis` on; also mean and 1 / deviation."""
    x, scale, bias = node.input(0), node.input(1), node.optional(2)
    axis = node.int("axis", -1) % x.rank
    epsilon = node.float("epsilon", 1e-5)
    m = moments(b, x, range(axis, x.rank))
    y = scaled(
        b,
        m,
        node.output_dtypes[0],
        epsilon,
        trailing(scale, x.rank),
        None if bias is None else trailing(bias, x.rank),
    )
    results: list[Tensor | None] = [y, None, None]
    share = 1 / max(m.count, 1)
    finishes: list[tuple[Tensor, Finish]] = [
        (m.total, lambda s: s * share),
        (m.squares.tensor, lambda s: m.inverse(s, epsilon)),
    ]
    for i, (reduced, finish) in enumerate(finishes, start=1):
        if i < len(node.wanted) and node.wanted[i]:
            made = b.cast(b.elementwise(finish, reduced), node.output_dtypes[i])
            results[i] = b.reshape(made, node.output_shapes[i])
    return results


def trailing(x: Tensor, rank: int) -> BroadcastOperand:
    """numpy's broadcast: x's dimensions are the last ones of the result."""
    return along_axis(x, rank - x.rank)


def rms_norm(b: Builder, node: Node) -> Tensor:
    """x / sqrt(mean(x * x) + epsilon) * scale over the dimensions from `axis` on."""
    x, scale = node.input(0), node.input(1)
    axes = range(node.int("axis", -1) % x.rank, x.rank)
    epsilon = node.float("epsilon", 1e-5)
    share = 1 / max(count_of(x, axes), 1)

    def body(s: Scalar, squares: Scalar, factor: Scalar) -> Scalar:
        inverse = (squares * share + epsilon).math("rsqrt")
        return s * inverse * factor.cast(s.dtype)

    return combine(
        b,
        body,
        x.shape,
        node.output_dtypes[0],
        x,
        sum_over(b, x, axes, squared=True),
        trailing(scale, x.rank),
    )


def instance_norm(b: Builder, node: Node) -> Tensor:
    """Each channel of each image by itself."""
    x, scale, bias = node.input(0), node.input(1), node.input(2)
    m = moments(b, x, range(2, x.rank))
    return scaled(
        b,
        m,
        node.output_dtypes[0],
        node.float("epsilon", 1e-5),
        along_axis(scale, 1),
        along_axis(bias, 1),
    )


def group_norm(b: Builder, node: Node) -> Tensor:
    """Groups of channels of each image; before opset 21 one scale a group."""
    x, scale, bias = node.input(0), node.input(1), node.input(2)
    groups, channels = node.int("num_groups"), x.shape[1]
    if groups < 1 or channels % groups:
        raise node.unsupported(
            f"{channels} channels do not divide into {groups} groups"
        )
    split = b.reshape(x, (x.shape[0], groups, channels // groups, *x.shape[2:]))
    m = moments(b, split, range(2, split.rank))
    if scale.shape == (channels,):
        scale, bias = (b.reshape(t, split.shape[1:3]) for t in (scale, bias))
    y = scaled(
        b,
        m,
        node.output_dtypes[0],
        node.float("epsilon", 1e-5),
        along_axis(scale, 1),
        along_axis(bias, 1),
    )
    return b.reshape(y, x.shape)


def mean_variance(b: Builder, node: Node) -> Tensor:
    """(x - mean) / (deviation + 1e-9); as in ReduceMean, no axes are all of them."""
    x = node.input(0)
    given = node.ints("axes", (0, 2, 3)) or range(x.rank)
    axes = sorted({a % x.rank for a in given})
    m = moments(b, x, axes)
    share = 1 / max(m.count, 1)

    def body(deviation: Scalar, squares: Scalar) -> Scalar:
        return deviation / ((squares * share).math("sqrt") + 1e-9)

    return combine(b, body, x.shape, node.output_dtypes[0], m.deviation, m.squares)


def lp_norm(b: Builder, node: Node) -> Tensor:
    """x / norm along an axis, 0 where the norm is 0."""
    x, p = node.input(0), node.int("p", 2)
    if p not in (1, 2):
        raise node.unsupported(f"p = {p}", "ONNX knows p = 1 and p = 2")
    axes = [node.int("axis", -1) % x.rank]
    norm = sum_over(b, x, axes, squared=True)
    if p == 1:
        found = b.reduce(
            add,
            x,
            axes,
            0,
            keepdims=False,
            dtype=computed_as(x.dtype),
            prepare=lambda s: s.absolute(),
        )
        norm = BroadcastOperand(found, norm.dims)

    def body(s: Scalar, total: Scalar) -> Scalar:
        size = total if p == 1 else total.math("sqrt")
        return select(size.equal(0), size, s / size)

    return combine(b, body, x.shape, node.output_dtypes[0], x, norm)


OPERATORS = {
    "GroupNormalization": group_norm,
    "InstanceNormalization": instance_norm,
    "LayerNormalization": layer_norm,
    "LpNormalization": lp_norm,
    "MeanVarianceNormalization": mean_variance,
    "RMSNormalization": rms_norm,
}
