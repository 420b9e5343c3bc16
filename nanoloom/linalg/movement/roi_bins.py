"""Bins of regions, each from the pixels that its samples read.

Vectors are along channels where these are last.  Otherwise they are along a row: what
the pixels of each column come to, which are then weighed along the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nanoloom.ir.mlir import arith, ir
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.lanes import lanes_of, load, splat, stored
from nanoloom.linalg.builder.numbered_loops import State, repeat
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.slices import element, index, with_element
from nanoloom.linalg.builder.sort import each_row
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.movement.roi_weights import (
    AxisWeights,
    Spans,
    Weights,
    axis_weights,
)

AT_ONCE = 4  # vectors of channels whose sums are in registers


@dataclass(frozen=True)
class Regions:
    """images: [n, c, h, w] or [n, h, w, c]; batch: the image of each region."""

    b: Builder
    images: Tensor
    batch: Tensor
    spans: Sequence[Spans]
    average: bool

    def pooled(self, shape: Sequence[int], channels_last: bool) -> Tensor:
        """Sums or largest terms, in the images' order of dimensions."""
        b, dtype = self.b, self.images.dtype
        images = b.tensor(b.value(self.images), dtype)

        def of_region(region: ir.Value, now: list[Tensor]) -> list[Tensor]:
            axes = [axis_weights(b, span, region, self.average) for span in self.spans]
            number = element(b, self.batch, [region])
            image = number.maximum(0).minimum(images.shape[0] - 1).index()
            args = Region(b, images, region, image, axes[0], axes[1])
            return [args.by_channels(now[0]) if channels_last else args.by_rows(now[0])]

        start = b.tensor(b.empty(shape, dtype), dtype)
        return each_row(b, shape[0], [start], of_region)[0]


@dataclass(frozen=True)
class Region:
    """One of them, at a place of the result and in an image."""

    b: Builder
    images: Tensor
    place: ir.Value
    image: ir.Value
    down: AxisWeights
    across: AxisWeights

    def by_channels(self, out: Tensor) -> Tensor:
        """out [regions, height, width, channels] with this region.

        Channels that are less than a vector are read and written with a mask.
        """
        b, (_, height, width, channels) = self.b, out.shape
        lanes = lanes_of(out.dtype)
        is_full = channels >= lanes
        rounds = -(-channels // (lanes * AT_ONCE))
        block = lanes * -(-channels // (lanes * rounds))

        def of_bin(row: ir.Value, column: ir.Value, out: Tensor) -> Tensor:
            def of_block(k: ir.Value, now: list[Tensor], _: list[Scalar]) -> State:
                each = [
                    within(arith.addi(k, index(i)), channels, lanes)
                    for i in range(0, block, lanes)
                ]
                each = each if is_full else [index(0)]
                made, out = self.pixels(row, column, each), now[0]
                for sums, at in zip(made, each, strict=True):
                    place = [self.place, row, column, at]
                    out = stored(b, sums, out, place, within=is_full)
                return [out], []

            return repeat(b, index(channels), ([out], []), of_block, by=block)[0][0]

        def of_row(row: ir.Value, now: list[Tensor], _: list[Scalar]) -> State:
            def step(column: ir.Value, now: list[Tensor], _: list[Scalar]) -> State:
                return [of_bin(row, column, now[0])], []

            return repeat(b, index(width), (now, []), step)

        return repeat(b, index(height), ([out], []), of_row)[0][0]

    def pixels(
        self, row: ir.Value, column: ir.Value, channels: Sequence[ir.Value]
    ) -> list[Scalar]:
        """A bin of vectors of channels, which begin at these."""
        b = self.b
        is_full = self.images.shape[3] >= lanes_of(self.images.dtype)

        def of_row(y: ir.Value, v: Weights, sums: list[Scalar]) -> list[Scalar]:
            def of_pixel(x: ir.Value, u: Weights, sums: list[Scalar]) -> list[Scalar]:
                pixels = [
                    load(b, self.images, [self.image, y, x, k], within=is_full)
                    for k in channels
                ]
                both = u.times(v)
                pairs = zip(sums, pixels, strict=True)
                return [both.added(total, pixel) for total, pixel in pairs]

            return self.across.over(b, column, sums, of_pixel)

        begin = splat(self.begin(row, column))
        return self.down.over(b, row, [begin] * len(channels), of_row)

    def begin(self, row: ir.Value, column: ir.Value) -> Scalar:
        """What a bin begins with: the larger of its axes' beginnings."""
        down = element(self.b, self.down.start, [row])
        return down.maximum(element(self.b, self.across.start, [column]))

    def by_rows(self, out: Tensor) -> Tensor:
        """out [regions, channels, height, width] with this region."""
        b, (_, channels, height, width) = self.b, out.shape
        size = self.images.shape[3]
        room = b.tensor(b.empty((size,), out.dtype), out.dtype)

        def of_channel(c: ir.Value, now: list[Tensor], _: list[Scalar]) -> State:
            def of_row(row: ir.Value, now: list[Tensor], _: list[Scalar]) -> State:
                sums = self.columns(now[1], c, row)

                def of_bin(
                    column: ir.Value, now: list[Tensor], _: list[Scalar]
                ) -> State:
                    made = self.weighed(sums, row, column)
                    at = [self.place, c, row, column]
                    return [with_element(b, now[0], at, made)], []

                (out,), _ = repeat(b, index(width), ([now[0]], []), of_bin)
                return [out, sums], []

            return repeat(b, index(height), (now, []), of_row)

        return repeat(b, index(channels), ([out, room], []), of_channel)[0][0]

    def columns(self, room: Tensor, channel: ir.Value, row: ir.Value) -> Tensor:
        """What the pixels of each column come to in a row of bins."""
        b, lanes, (size,) = self.b, lanes_of(room.dtype), room.shape
        first, end = (x.index() for x in self.across.read)
        is_wide = size >= lanes

        def of_lanes(k: ir.Value, now: list[Tensor], _: list[Scalar]) -> State:
            x = within(arith.addi(k, first), size, lanes) if is_wide else index(0)

            def of_row(y: ir.Value, v: Weights, sums: list[Scalar]) -> list[Scalar]:
                at = [self.image, channel, y, x]
                return [v.added(sums[0], load(b, self.images, at, within=is_wide))]

            begin = splat(element(b, self.down.start, [row]))
            (made,) = self.down.over(b, row, [begin], of_row)
            return [stored(b, made, now[0], [x], within=is_wide)], []

        count = arith.subi(end, first)
        return repeat(b, count, ([room], []), of_lanes, by=lanes)[0][0]

    def weighed(self, sums: Tensor, row: ir.Value, column: ir.Value) -> Scalar:
        """A bin, from what its columns come to."""

        def of_pixel(x: ir.Value, u: Weights, totals: list[Scalar]) -> list[Scalar]:
            return [u.added(totals[0], element(self.b, sums, [x]))]

        begin = [self.begin(row, column)]
        return self.across.over(self.b, column, begin, of_pixel)[0]


def within(place: ir.Value, extent: int, lanes: int) -> ir.Value:
    """Where a vector begins that is not to end behind an extent.

    What the one in front of it has as well is computed twice.
    """
    return arith.minui(place, index(extent - lanes))
