"""Convolutions by Winograd's method: fewer products, and more sums.

In one dimension, m results y of p numbers d and some taps g are

    y = A ((G g) * (B d))

with constant matrices (graph/winograd_transforms.py).  In two dimensions this is done
along each axis of several taps; the products of all channels are then one matrix
product for each of the p x p places of a tile:

    V = B d B'      M[place] = V[place] @ U[place]      y = A M A'

U = G g G' is made when the weights are written, in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from nanoloom.graph.winograd_cost import Axes, axes_of
from nanoloom.graph.winograd_transforms import Filtering, transforms
from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import (
    PARALLEL,
    REDUCTION,
    Builder,
    Map,
    computed_as,
)
from nanoloom.linalg.builder.placed_operands import BroadcastOperand, combine
from nanoloom.linalg.builder.scalar import Number, Scalar
from nanoloom.linalg.builder.tensor import Tensor, changed, constant_tensor
from nanoloom.linalg.builder.window import Window
from nanoloom.linalg.products.winograd_filters import TransformedFilters
from nanoloom.weights.chunked_conversion import Array
from nanoloom.weights.derivations import Cast, Coefficients


def winograd(
    b: Builder,
    x: Tensor,
    w: Tensor,
    window: Window,
    tile: int,
    bias: Tensor | None,
    groups: int = 1,
) -> Tensor:
    """The convolution of x [n, sides..., c] with constant w [f, c / groups, taps...].

    tile: results along each axis of several taps.  bias: [f].  Of floats of 16 bits all
    between is in 32, and the result is rounded once.
    """
    axes, wide = axes_of_window(window, tile), computed_as(x.dtype)
    tables = [Tables.of(axis, wide) for axis in axes]
    if w.dtype != wide:
        w = changed(w, Cast(wide))
    filters = changed(w, TransformedFilters(axes))
    whole = Tiles(b, window, axes, tables).convolved(x, filters, groups)
    if bias is not None:
        placed = BroadcastOperand(b.cast(bias, wide), (whole.rank - 1,))
        whole = combine(b, add, whole.shape, wide, whole, placed)
    return image_of(b, b.cast(whole, x.dtype), window)


def axes_of_window(window: Window, tile: int) -> Axes:
    return axes_of(list(zip(window.kernel, window.strides, strict=True)), tile)


@dataclass(frozen=True)
class Tables:
    """B and A of an axis, as operands."""

    image: Tensor
    result: Tensor

    @staticmethod
    def of(axis: Filtering, dtype: np.dtype) -> Tables:
        given, name = transforms(axis), f"winograd{axis}"
        return Tables(
            table(given.image.astype(dtype), f"{name}.image"),
            table(given.result.astype(dtype), f"{name}.result"),
        )


def table(numbers: Array, name: str) -> Tensor:
    """A constant that the code is made for."""
    return changed(constant_tensor(numbers, name), Coefficients())


@dataclass(frozen=True)
class Tiles:
    """A convolution in tiles.

    Letters of dimensions: n images, y and x tiles, a and b places, i and j results of a
    tile, c channels, g groups of them, k filters.  Axes of one tap have no places.
    """

    b: Builder
    window: Window
    axes: Axes
    tables: Sequence[Tables]

    def convolved(
        self, x: Tensor, filters: Tensor, groups: int = 1, around: Number = 0
    ) -> Tensor:
        """Tiles [n, y, m, x, m, f] of an image [n, sides..., c] and U.

        around: the number that stands in the padding.
        """
        return self.products(*self.transformed(self.padded(x, around)), filters, groups)

    @property
    def letters(self) -> list[tuple[str, str, str]]:
        """Of each axis: those of tiles, places and results; the last axis' at last."""
        known = [("y", "a", "i"), ("x", "b", "j")]
        return known[len(known) - len(self.axes) :]

    @property
    def counts(self) -> list[int]:
        """Tiles along each axis of the result."""
        pairs = zip(self.window.result, self.axes, strict=True)
        return [-(-extent // axis.tile) for extent, axis in pairs]

    def padded(self, x: Tensor, number: Number = 0) -> Tensor:
        """An image [n, sides..., c] with all that its tiles read around it."""
        low, high = [0, *self.window.low, 0], [0, *self.room(), 0]
        return self.b.pad(x, low, high, number)

    def room(self) -> list[int]:
        """How much the last tiles read behind the image, along each axis.

        As much as any of them may where images are of any size.
        """
        window = self.window
        if window.whole:
            pairs = zip(window.high, self.axes, strict=True)
            return [high + axis.step - axis.stride for high, axis in pairs]
        extents = zip(self.axes, self.counts, window.size, window.low, strict=True)
        ends = ((x.step * (count - 1) + x.reach, *more) for x, count, *more in extents)
        return [max(0, end - size - low) for end, size, low in ends]

    def transformed(self, x: Tensor) -> tuple[Tensor, str]:
        """The tiles of an image [n, sides..., c] as V, and the letters of V.

        They overlap: what lies below each other is added first, for all columns.
        """
        counts, places, sides = "", "", "".join(y for y, _, _ in self.letters)
        for k, axis in enumerate(self.axes):
            count, place, _ = self.letters[k]
            if axis.taps == 1:
                if not places:
                    counts, sides = counts + count, sides[1:]
                continue
            given = f"n{counts}{places}{sides}c"
            counts, places, sides = counts + count, places + place, sides[1:]
            made = f"n{counts}{places}{sides}c"
            x = self.sums(k, x, given, made)
        return x, f"n{counts}{places}{sides}c"

    def sums(self, k: int, x: Tensor, given: str, made: str) -> Tensor:
        """B along an axis of x: from an image's sides, or of columns of tiles."""
        matrix, axis, (count, place, _) = (
            self.tables[k].image,
            self.axes[k],
            self.letters[k],
        )
        extents = dict(zip(given, x.shape, strict=True))
        extents |= {count: self.counts[k], place: matrix.shape[0]}
        at = {c: ir.AffineDimExpr.get(n) for n, c in enumerate(made)}
        tap = ir.AffineDimExpr.get(len(made))
        read = {**at, count: at[count] * axis.step + tap}
        shape = [extents[c] for c in made]

        def body(coefficient: Scalar, element: Scalar, total: Scalar) -> Scalar:
            return total + coefficient * element.cast(matrix.dtype)

        dims = len(made) + 1
        (result,) = self.b.generic(
            [
                (matrix, Map.get(dims, 0, [at[place], tap])),
                (x, Map.get(dims, 0, [read[c] for c in given])),
            ],
            [
                (
                    self.b.full(shape, 0, matrix.dtype),
                    Map.get(dims, 0, list(at.values())),
                )
            ],
            [PARALLEL] * len(made) + [REDUCTION],
            body,
        )
        return result

    def products(self, v: Tensor, dims: str, filters: Tensor, groups: int) -> Tensor:
        """Tiles [n, y, m, x, m, f] of V, U, and matrices A."""
        b, places = self.b, "".join(c for c in dims if c in "ab")
        dtype, outer = self.tables[0].result.dtype, dims[:-1]
        if groups == 1:
            equation = f"{dims},{places}ck->{outer}k"
            made = b.einsum(equation, v, filters, dtype=dtype)
        else:
            *sides, depth, features = filters.shape
            v = b.reshape(v, (*v.shape[:-1], groups, depth))
            filters = b.reshape(filters, (*sides, depth, groups, features // groups))
            equation = f"{outer}gc,{places}cgk->{outer}gk"
            made = b.einsum(equation, v, filters, dtype=dtype)
            made = b.reshape(made, (*made.shape[:-2], features))
        now = f"{outer}k"
        several = [k for k, axis in enumerate(self.axes) if axis.taps > 1]
        for k in several:
            _, place, result = self.letters[k]
            then = self.final if k == several[-1] else now.replace(place, result)
            equation = f"{result}{place},{now}->{then}"
            made, now = b.einsum(equation, self.tables[k].result, made), then
        return made

    @property
    def final(self) -> str:
        """Letters of the result: those of an axis beside each other."""
        pairs = zip(self.axes, self.letters, strict=True)
        sides = (
            count + (one if axis.taps > 1 else "") for axis, (count, _, one) in pairs
        )
        return f"n{''.join(sides)}k"


def image_of(b: Builder, whole: Tensor, window: Window) -> Tensor:
    """Tiles [n, y, m, x, m, f] as the result [n, sides..., f].

    Cut off where images are of any size, though tiles of some sizes end with them.
    """
    n, *tiles, made = whole.shape
    sides: list[int] = []
    for taps in window.kernel:
        count, *inside = (tiles.pop(0) for _ in range(2 if taps > 1 else 1))
        sides.append(count * prod(inside))
    joined = b.reshape(whole, (n, *sides, made))
    shape = (n, *window.result, made)
    if joined.shape == shape and not window.whole:
        return joined
    return (
        b.first(joined, shape)
        if window.whole
        else b.slice(joined, [0] * len(shape), shape)
    )


def add(one: Scalar, other: Scalar) -> Scalar:
    return one + other
