"""RoiAlign: pools of interpolated samples over regions known at run time."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from nanoloom.linalg.builder.builder import Builder, Map, computed_as
from nanoloom.linalg.builder.index_checks import check
from nanoloom.linalg.builder.indexing import INT64, dims, map_generic
from nanoloom.linalg.builder.lanes import lanes_of
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, select
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.movement.roi_bins import Regions
from nanoloom.linalg.movement.roi_weights import Spans

CHANNELS_LAST = 0, 2, 3, 1
CORNERS, USUAL_RATIO = 4, 2  # pixels of a sample; samples of a bin along an axis


def column(b: Builder, rois: Tensor, number: int, dtype: np.dtype) -> Tensor:
    """One coordinate of every region, [regions]."""
    count = rois.shape[0]
    part = b.slice(rois, (0, number), (count, 1))
    return b.cast(b.reshape(part, (count,)), dtype)


def clamped(index: Scalar, extent: int) -> Scalar:
    return index.maximum(0).minimum(max(extent - 1, 0))


def roi_align(b: Builder, node: Node) -> Tensor:
    """Samples of a grid in each bin, interpolated; their mean or largest term.

    The grid has sampling_ratio^2 places, or, for 0, as many as the region has pixels.
    """
    x, rois = node.input(0), node.input(1)
    wide, average = computed_as(x.dtype), node.string("mode", "avg") == "avg"
    shape, ratio = node.output_shapes[0], node.int("sampling_ratio")
    if 0 in shape or x.size == 0:
        return b.full(shape, 0, x.dtype)
    spans = [spans_of(b, node, rois, d, wide) for d in range(2)]
    batch = b.cast(node.input(2), INT64)
    check(b, node, node.input(2), range(x.shape[0]), "batch index")
    order = order_of(x, shape, ratio)
    image = b.cast(b.transpose(x, order), wide)
    regions = Regions(b, image, batch, spans, average)
    total = regions.pooled([shape[d] for d in order], order is CHANNELS_LAST)

    def finish(value: Scalar, height: Scalar, width: Scalar) -> Scalar:
        count = (height * width).maximum(1).cast(wide)
        if average:
            return value / count
        return select((height > 0) & (width > 0), value, 0)

    counts = [(span.count, dims(4, [0])) for span in spans]
    identity = (total, Map.get_identity(4))
    made = map_generic(b, total.shape, x.dtype, [identity, *counts], finish)
    return b.transpose(made, [order.index(d) for d in range(4)])


def order_of(x: Tensor, shape: Sequence[int], ratio: int) -> Sequence[int]:
    """Dimensions of x [n, c, h, w] and of the result, as they are read and made.

    Channels are last if they fill half a vector, as all of a pixel have one weight,
    unless regions read less of an image than it takes to turn it.
    """
    regions, channels, *bins = shape
    reads = regions * prod(bins) * (ratio or USUAL_RATIO) ** 2 * CORNERS
    is_half = 2 * channels >= lanes_of(computed_as(x.dtype))
    is_last = is_half and reads >= x.size // channels
    return CHANNELS_LAST if is_last else range(4)


def spans_of(b: Builder, node: Node, rois: Tensor, axis: int, dtype: np.dtype) -> Spans:
    """Every region along height (0) or width (1)."""
    bins, size = node.output_shapes[0][2 + axis], node.input(0).shape[2 + axis]
    start, extent = axis_of(b, node, rois, axis, dtype)
    count = grid_of(b, extent, bins, node.int("sampling_ratio"))
    return Spans(start, extent, count, bins, size)


def axis_of(
    b: Builder, node: Node, rois: Tensor, axis: int, dtype: np.dtype
) -> tuple[Tensor, Tensor]:
    """Start and extent of every region along height (0) or width (1), in x's pixels."""
    mode = node.string("coordinate_transformation_mode", "half_pixel")
    half = mode == "half_pixel" and node.version >= 16
    scale, shift = node.float("spatial_scale", 1.0), 0.5 if half else 0.0
    low, high = (column(b, rois, i, dtype) for i in (1 - axis, 3 - axis))
    start = b.elementwise(lambda s: s * scale - shift, low)

    def extent(first: Scalar, last: Scalar) -> Scalar:
        size = last * scale - shift - (first * scale - shift)
        return size if half else size.maximum(1)

    return start, b.elementwise(extent, low, high)


def grid_of(b: Builder, extents: Tensor, bins: int, ratio: int) -> Tensor:
    """Samples in each bin along an axis, int64 [regions]."""
    if ratio > 0:
        return b.full(extents.shape, ratio, INT64)

    def count(extent: Scalar) -> Scalar:
        size = (extent / bins).math("ceil")
        size = select(size > 0, size, 0)
        return select(size < 2**31, size, 0).cast(INT64)

    return b.elementwise(count, extents, dtype=INT64)


OPERATORS = {"RoiAlign": roi_align}
