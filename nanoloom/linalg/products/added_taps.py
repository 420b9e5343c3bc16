"""ConvTranspose by one product: its columns are taps, which lie over each other.

    x [n, c, s...], w [c, f / groups, k...]  ->  [n, f, k..., s...]  ->  [n, f, o...]

Nothing is turned: pixels stay side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import (
    PARALLEL,
    REDUCTION,
    Builder,
    Map,
    computed_as,
)
from nanoloom.linalg.builder.indexing import dims
from nanoloom.linalg.builder.overlapping_blocks import Axis, summed
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.tensor import Tensor


def added_taps(
    b: Builder, x: Tensor, w: Tensor, axes: Sequence[Axis], groups: int
) -> Tensor:
    """The image that the axes say: [n, f, o...], not rounded."""
    images, features = x.shape[0], groups * w.shape[1]
    block, blocks = [axis.block for axis in axes], [axis.blocks for axis in axes]
    made = columns(b, x, w, groups)
    return summed(b, b.reshape(made, (images, features, *block, *blocks)), axes)


def columns(b: Builder, x: Tensor, w: Tensor, groups: int) -> Tensor:
    """[n, (g, c), s...], [(g, c), f, k...] to [n, g, (f k...), (s...)]."""
    images, channels, *size = x.shape
    pixels = b.reshape(x, (images, groups, channels // groups, prod(size)))
    filters = b.reshape(w, (groups, channels // groups, prod(w.shape[1:])))
    shape = images, groups, filters.shape[-1], pixels.shape[-1]
    image, group, column, pixel, channel = map(ir.AffineDimExpr.get, range(5))

    def body(weight: Scalar, element: Scalar, total: Scalar) -> Scalar:
        return total + element * weight

    return b.generic(
        [
            (filters, Map.get(5, 0, [group, channel, column])),
            (pixels, Map.get(5, 0, [image, group, channel, pixel])),
        ],
        [(b.full(shape, 0, computed_as(x.dtype)), dims(5, range(4)))],
        [PARALLEL] * 4 + [REDUCTION],
        body,
    )[0]
