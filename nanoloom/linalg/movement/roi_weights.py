"""What the samples of a region weigh along one axis, summed up for every pixel.

A sample reads two pixels along each axis, and weighs a pixel by a product of both
axes.  So does a sum over the grid of a bin, and, as no weight is below 0, the largest
term: a pixel has one weight along each axis, however many samples and channels read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nanoloom.ir.mlir import arith, ir
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.indexing import INT64
from nanoloom.linalg.builder.lanes import each, splat
from nanoloom.linalg.builder.numbered_loops import State, repeat, when
from nanoloom.linalg.builder.scalar import Number, Scalar, constant, from_index, select
from nanoloom.linalg.builder.slices import element, index, with_element
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.reductions.reduce import lowest

UNREAD = -1  # the weight of a pixel that no sample reads
Pixel = tuple[Scalar, Scalar]  # its place and its weight
Step = Callable[[ir.Value, "Weights", list[Scalar]], list[Scalar]]


@dataclass(frozen=True)
class Weights:
    """Those of a pixel, and whether a sample reads it.

    Of a mean: a part of their sum, and the rest of it.  The part is 0 where one of them
    is, so that an infinite pixel becomes NaN as 0 * inf does, and only there.
    Otherwise: the largest and the least of them.
    """

    values: tuple[Scalar, Scalar]
    is_read: Scalar
    average: bool

    def times(self, other: Weights) -> Weights:
        """Those of both axes."""
        (a, b), (c, d) = self.values, other.values
        part = a * c
        both = part, (a + b) * (c + d) - part if self.average else b * d
        return Weights(both, self.is_read & other.is_read, self.average)

    def added(self, total: Scalar, pixel: Scalar) -> Scalar:
        """A total with this pixel; numbers, or lanes.

        Where the smaller product alone is NaN, 0 * inf, it is what the select takes.
        """
        is_vector = isinstance(total.value.type, ir.VectorType)
        one, other = (splat(x) if is_vector else x for x in self.values)
        if self.average:
            pixel = select(self.is_read, pixel, nothing(pixel, 0))
            return pixel.times_plus(one, pixel.times_plus(other, total))
        most, least = pixel * one, pixel * other
        larger = select(most > least, most, least)
        unread = nothing(pixel, lowest(pixel.dtype))
        return total.maximum(select(self.is_read, larger, unread))


def nothing(like: Scalar, number: Number) -> Scalar:
    """A number that adds nothing to a total, or one in each lane."""
    is_vector = isinstance(like.value.type, ir.VectorType)
    return each(number, like.dtype) if is_vector else constant(number, like.dtype)


@dataclass(frozen=True)
class Spans:
    """Every region along an axis, in pixels: start, extent and samples of each bin."""

    start: Tensor
    extent: Tensor
    count: Tensor
    bins: int
    size: int


@dataclass(frozen=True)
class AxisWeights:
    """Those of one region.

    tables: two, [bins, size], of the values of `Weights`.
    ends: int64 [bins], the pixels [first, end) that are read.
    start: [bins], what a bin begins with: 0 where a sample lies outside of the image.
    read: the pixels [first, end) that any bin reads.
    average: whether the weights are those of a mean.
    """

    tables: Sequence[Tensor]
    ends: tuple[Tensor, Tensor]
    start: Tensor
    read: tuple[Scalar, Scalar]
    average: bool

    def over(
        self, b: Builder, place: ir.Value, totals: list[Scalar], step: Step
    ) -> list[Scalar]:
        """totals = step(pixel, its weights, totals) for those that a bin reads."""
        first, end = (element(b, t, [place]) for t in self.ends)

        def trip(i: ir.Value, _: list[Tensor], totals: list[Scalar]) -> State:
            pixel = arith.addi(i, first.index())
            one, other = (element(b, t, [place, pixel]) for t in self.tables)
            weights = Weights((one, other), one > UNREAD, self.average)
            return [], step(pixel, weights, totals)

        return repeat(b, (end - first).index(), ([], totals), trip)[1]


def axis_weights(
    b: Builder, spans: Spans, region: ir.Value, average: bool
) -> AxisWeights:
    """Those of a region, within a loop over regions."""
    wide, bins = spans.start.dtype, (spans.bins,)
    begin, extent, count = (
        element(b, t, [region]) for t in (spans.start, spans.extent, spans.count)
    )
    ends = [b.full(bins, 0, INT64), b.full(bins, 0, INT64)]
    start = b.full(bins, 0 if average else lowest(wide), wide)
    shape = spans.bins, spans.size
    tables = [b.full(shape, UNREAD, wide), b.full(shape, 1, wide)]

    none = [constant(spans.size, INT64), constant(0, INT64)]

    def of_bin(place: ir.Value, now: list[Tensor], every: list[Scalar]) -> State:
        def of_sample(k: ir.Value, now: list[Tensor], read: list[Scalar]) -> State:
            numbers = from_index(k), from_index(place)
            at = sampled_place((begin, extent), count, spans.bins, *numbers)
            return weigh(b, spans.size, at, place, average, (now, read))

        kept, found = repeat(b, count.index(), (now[2:], none), of_sample)
        pairs = zip(now[:2], found, strict=True)
        return [*(with_element(b, t, [place], x) for t, x in pairs), *kept], [
            every[0].minimum(found[0]),
            every[1].maximum(found[1]),
        ]

    begun = [*ends, start, *tables], none
    made, (first, end) = repeat(b, index(spans.bins), begun, of_bin)
    return AxisWeights(made[3:], (made[0], made[1]), made[2], (first, end), average)


def sampled_place(
    span: tuple[Scalar, Scalar],
    count: Scalar,
    bins: int,
    number: Scalar,
    place: Scalar,
) -> Scalar:
    """Where sample `number` of the bin at a place lies along an axis."""
    start, extent = span
    dtype, width = extent.dtype, extent / bins
    first = start + place.cast(dtype) * width
    return first + (number.cast(dtype) + 0.5) * width / count.cast(dtype)


def weigh(
    b: Builder, size: int, at: Scalar, place: ir.Value, average: bool, state: State
) -> State:
    """One sample more of the bin at a place.

    state: what the bin begins with and the tables; the pixels [first, end) so far.
    """
    inside = (at >= -1) & (at <= size)
    start, *tables = state[0]
    begun = select(inside, element(b, start, [place]), 0)
    start = with_element(b, start, [place], begun)

    def add(now: list[Tensor], read: list[Scalar]) -> State:
        pixels = neighbours(at, size)
        tables = now[1:]
        for pixel in pixels:
            tables = with_pixel(b, tables, place, pixel, average)
        (low, _), (high, _) = pixels
        return [now[0], *tables], [read[0].minimum(low), read[1].maximum(high + 1)]

    return when(b, inside, ([start, *tables], state[1]), add)


def with_pixel(
    b: Builder, tables: Sequence[Tensor], place: ir.Value, pixel: Pixel, average: bool
) -> list[Tensor]:
    """The tables with a pixel that a sample reads."""
    at, weight = [place, pixel[0].index()], pixel[1]
    one, other = (element(b, t, at) for t in tables)
    if average:
        total = select(one < 0, weight, one + other + weight)
        part = select(one.equal(0) | weight.equal(0), weight * 0, total / 2)
        new = part, total - part
    else:
        new = one.maximum(weight), other.minimum(weight)
    return [with_element(b, t, at, x) for t, x in zip(tables, new, strict=True)]


def neighbours(place: Scalar, extent: int) -> list[Pixel]:
    """The two pixels around a place in [-1, extent] and their weights."""
    place = place.maximum(0)
    low = place.cast(INT64)
    last = low >= extent - 1
    low = select(last, low * 0 + (extent - 1), low)
    near = select(last, place * 0, place - low.cast(place.dtype))
    return [(low, 1 - near), ((low + 1).minimum(extent - 1), near)]
