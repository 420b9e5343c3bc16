"""RoiAlign: pools of interpolated samples over regions known at run time."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from nanoloom.ir.mlir import arith, ir
from nanoloom.linalg.builder.builder import Builder, Map, computed_as
from nanoloom.linalg.builder.index_checks import check
from nanoloom.linalg.builder.indexing import INT64, dims, map_generic, position
from nanoloom.linalg.builder.loops import repeat
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, from_index, select
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.control.bodies import element
from nanoloom.linalg.reductions.reduce import lowest

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

    The grid has sampling_ratio^2 places, or, for 0, as many as the region has pixels:
    then the loops over the grid run as far as the largest region needs.
    """
    x, rois = node.input(0), node.input(1)
    wide, average = computed_as(x.dtype), node.string("mode", "avg") == "avg"
    shape, ratio = node.output_shapes[0], node.int("sampling_ratio")
    if 0 in shape or x.size == 0:
        return b.full(shape, 0, x.dtype)
    spans = [axis_of(b, node, rois, d, wide) for d in range(2)]
    grids = [
        grid_of(b, span[1], size, ratio)
        for span, size in zip(spans, shape[2:], strict=True)
    ]
    trips = [grid_trips(b, grid, ratio) for grid in grids]
    batch = b.cast(node.input(2), INT64)
    check(b, node, node.input(2), range(x.shape[0]), "batch index")

    def row(iy: ir.Value, outer: list[Tensor]) -> list[Tensor]:
        def cell(ix: ir.Value, inner: list[Tensor]) -> list[Tensor]:
            at = (from_index(iy), from_index(ix))
            return [sample(b, x, inner[0], batch, spans, grids, at, average, order)]

        return repeat(b, trips[1], outer, cell)

    order = order_of(x, shape, ratio)
    x, ordered = b.transpose(x, order), [shape[d] for d in order]
    start = b.full(ordered, 0 if average else lowest(wide), wide)
    (total,) = repeat(b, trips[0], [start], row)
    counts = [(grid, dims(4, [0])) for grid in grids]

    def finish(value: Scalar, height: Scalar, width: Scalar) -> Scalar:
        count = (height * width).maximum(1).cast(wide)
        if average:
            return value / count
        return select((height > 0) & (width > 0), value, 0)

    identity = (total, Map.get_identity(4))
    made = map_generic(b, ordered, x.dtype, [identity, *counts], finish)
    return b.transpose(made, [order.index(d) for d in range(4)])


def order_of(x: Tensor, shape: Sequence[int], ratio: int) -> Sequence[int]:
    """Dimensions of x [n, c, h, w] and of the result, as they are read and made.

    Channels are last, as all of a place have the same weights, unless regions read
    less of an image than it takes to turn it.
    """
    regions, _, *bins = shape
    reads = regions * prod(bins) * (ratio or USUAL_RATIO) ** 2 * CORNERS
    return CHANNELS_LAST if reads >= x.size // x.shape[1] else range(4)


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


def grid_trips(b: Builder, grid: Tensor, ratio: int) -> ir.Value | int:
    """How often the loop over the samples of an axis runs."""
    if ratio > 0:
        return ratio
    most = b.reduce(lambda s, x: s.maximum(x), grid, [0], 0, keepdims=False)
    return arith.index_cast(ir.IndexType.get(), element(b, most))


def sample(
    b: Builder,
    x: Tensor,
    total: Tensor,
    batch: Tensor,
    spans: Sequence[tuple[Tensor, Tensor]],
    grids: Sequence[Tensor],
    at: tuple[Scalar, Scalar],
    average: bool,
    order: Sequence[int],
) -> Tensor:
    """total with one sample of every bin added, or the larger of both.

    order: of the dimensions of x and total, that are n, c, h, w.
    """
    source, sides_at = b.value(x), [order.index(d) for d in (2, 3)]
    size, bins = ([t.shape[d] for d in sides_at] for t in (x, total))
    one = dims(4, [0])
    inputs = [(total, Map.get_identity(4)), (batch, one)]
    inputs += [(t, one) for span in spans for t in span]
    inputs += [(grid, one) for grid in grids]

    def body(sofar: Scalar, image: Scalar, *rest: Scalar) -> Scalar:
        sides = [
            sampled_place(rest[2 * d : 2 * d + 2], rest[4 + d], at[d], bins[d], place)
            for d, place in enumerate(map(position, sides_at))
        ]
        inside = [(p >= -1) & (p <= s) for (p, _), s in zip(sides, size, strict=True)]
        corners = [
            neighbours(select(here, place, 0), extent)
            for here, (place, _), extent in zip(inside, sides, size, strict=True)
        ]
        image, channel = clamped(image, x.shape[0]), position(order.index(1))
        terms = [
            b.load(source, x.dtype, [(image, channel, i, j)[d] for d in order])
            * (u * v)
            for i, u in corners[0]
            for j, v in corners[1]
        ]
        counted, here = sides[0][1] & sides[1][1], inside[0] & inside[1]
        if average:
            value = (terms[0] + terms[1]) + (terms[2] + terms[3])
            return sofar + select(counted & here, value, 0)
        value = terms[0].maximum(terms[1]).maximum(terms[2].maximum(terms[3]))
        return select(counted, sofar.maximum(select(here, value, 0)), sofar)

    return map_generic(b, total.shape, total.dtype, inputs, body)


def sampled_place(
    span: Sequence[Scalar], count: Scalar, number: Scalar, bins: int, place: Scalar
) -> tuple[Scalar, Scalar]:
    """Where sample `number` of the bin at a place lies along an axis, if it counts."""
    start, extent = span
    dtype, width = extent.dtype, extent / bins
    first = start + place.cast(dtype) * width
    step = (number.cast(dtype) + 0.5) * width / count.maximum(1).cast(dtype)
    return first + step, number < count


def neighbours(place: Scalar, extent: int) -> list[tuple[Scalar, Scalar]]:
    """The two elements around a place in [-1, extent] and their weights."""
    place = place.maximum(0)
    low = place.cast(INT64)
    last = low >= extent - 1
    low = select(last, low * 0 + (extent - 1), low)
    near = select(last, place * 0, place - low.cast(place.dtype))
    return [(low, 1 - near), ((low + 1).minimum(extent - 1), near)]


OPERATORS = {"RoiAlign": roi_align}
