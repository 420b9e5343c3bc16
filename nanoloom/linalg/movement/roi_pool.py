"""MaxRoiPool: the largest element of each bin of regions known at run time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nanoloom.linalg.builder.builder import (
    PARALLEL,
    REDUCTION,
    Builder,
    Map,
    computed_as,
)
from nanoloom.linalg.builder.index_checks import check
from nanoloom.linalg.builder.indexing import INT64, dims, map_generic, position
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, select
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.movement.roi_align import clamped, column
from nanoloom.linalg.reductions.reduce import lowest


@dataclass(frozen=True)
class Side:
    """The regions along one axis: first and last pixels, and the number of bins."""

    first: Tensor
    last: Tensor
    bins: int
    extent: int

    def bounds(
        self, first: Scalar, last: Scalar, number: Scalar
    ) -> tuple[Scalar, Scalar]:
        """The pixels [low, high) of a bin, inside the input."""
        width = (last - first + 1).maximum(1) / self.bins
        place = number.cast(first.dtype)
        low = (place * width).math("floor") + first
        high = ((place + 1) * width).math("ceil") + first
        return (
            low.maximum(0).minimum(self.extent),
            high.maximum(0).minimum(self.extent),
        )


def max_roi_pool(b: Builder, node: Node) -> Tensor:
    """Regions are [image, x1, y1, x2, y2], ends included; an empty bin gives 0.

    First along width into [regions, channels, height, bins], then along height.
    """
    x, rois, shape = node.input(0), node.input(1), node.output_shapes[0]
    if 0 in shape or x.size == 0:
        return b.full(shape, 0, x.dtype)
    wide = computed_as(x.dtype)
    down, across = (side_of(b, node, d) for d in range(2))
    source = b.value(x)
    numbers = b.cast(column(b, rois, 0, wide), INT64)
    check(b, node, numbers, range(x.shape[0]), "batch index")
    images = b.value(numbers)

    def pixel() -> Scalar:
        image = clamped(b.load(images, INT64, [position(0)]), x.shape[0])
        return b.load(source, x.dtype, [image, *map(position, (1, 2, 4))])

    rows = largest_in_bins(b, across, (*shape[:2], x.shape[2]), 3, wide, pixel)
    row_source = b.value(rows)

    def row() -> Scalar:
        return b.load(row_source, wide, [*map(position, (0, 1, 4, 3))])

    made = largest_in_bins(b, down, (*shape[:2], shape[3]), 2, wide, row)

    def finish(value: Scalar, *ends: Scalar) -> Scalar:
        top, bottom = down.bounds(ends[0], ends[1], position(2))
        left, right = across.bounds(ends[2], ends[3], position(3))
        return select((top < bottom) & (left < right), value, 0)

    one = dims(4, [0])
    ends = [(t, one) for side in (down, across) for t in (side.first, side.last)]
    inputs = [(made, Map.get_identity(4)), *ends]
    return map_generic(b, shape, x.dtype, inputs, finish)


def side_of(b: Builder, node: Node, axis: int) -> Side:
    """The regions along height (0) or width (1), rounded to pixels of x."""
    x, rois = node.input(0), node.input(1)
    scale, wide = node.float("spatial_scale", 1.0), computed_as(x.dtype)

    def pixel(place: Scalar) -> Scalar:
        """Half a pixel rounds away from zero, as C's round does."""
        scaled = place * scale
        near = (scaled.absolute() + 0.5).math("floor")
        return near.math("copysign", scaled)

    ends = [
        b.elementwise(pixel, column(b, rois, i, wide)) for i in (2 - axis, 4 - axis)
    ]
    return Side(ends[0], ends[1], node.output_shapes[0][2 + axis], x.shape[2 + axis])


def largest_in_bins(
    b: Builder,
    side: Side,
    others: tuple[int, ...],
    axis: int,
    dtype: np.dtype,
    value: Callable[[], Scalar],
) -> Tensor:
    """The maximum of value() over the pixels (loop 4) of each bin (loop `axis`)."""
    shape = [*others]
    shape.insert(axis, side.bins)
    start = b.full(shape, lowest(dtype), dtype)
    pixels = Tensor((side.extent,), dtype, b.empty((side.extent,), dtype))

    def body(first: Scalar, last: Scalar, _: Scalar, top: Scalar) -> Scalar:
        low, high = side.bounds(first, last, position(axis))
        place = position(4).cast(dtype)
        inside = (place >= low) & (place < high)
        return select(inside, top.maximum(value()), top)

    inputs = [(t, dims(5, [0])) for t in (side.first, side.last)]
    return b.generic(
        [*inputs, (pixels, dims(5, [4]))],
        [(start, dims(5, range(4)))],
        [PARALLEL] * 4 + [REDUCTION],
        body,
    )[0]


OPERATORS = {"MaxRoiPool": max_roi_pool}
