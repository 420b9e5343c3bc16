"""Convolutions with 3x3 filters by Winograd's method: fewer products, and more sums.

In one dimension, m results y of m + 2 numbers d and 3 taps g are

    y = A ((G g) * (B d))

with constant matrices (S. Winograd, Arithmetic complexity of computations, 1980; A.
Lavin and S. Gray, Fast algorithms for convolutional neural networks, 2015).  Of stride
2 the results are sums of two such convolutions, of every second number with every
second tap, side by side in the matrices:

    y[i] = (d[2i] g[0] + d[2i + 2] g[2])  +  d[2i + 1] g[1]

In two dimensions this is done along each axis; the products of all channels are then
one matrix product for each of the (m + 2)^2 places of a tile, (2m + 1)^2 of stride 2:

    V = B d B'      M[place] = V[place] @ U[place]      y = A M A'

U = G g G' is made when the weights are written, in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from nanoloom.graph.winograd import TAPS, places_along
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
from nanoloom.weights.chunked_conversion import Array, Stored
from nanoloom.weights.derivations import Cast, Coefficients
from nanoloom.weights.weight import Derivation, Shape

POINTS = (0, 1, -1, 2, -2)  # where the polynomials are multiplied, and at infinity
BLOCK = 1 << 20  # numbers of filters that are transformed at once


@dataclass(frozen=True)
class Transforms:
    """The matrices of one dimension, in float64: exact but for G's thirds.

    Of p products for m results.  image: B [p, numbers that the results read].  filters:
    G [p, 3].  result: A [m, p].
    """

    image: Array
    filters: Array
    result: Array


@cache
def transforms(tile: int, stride: int = 1) -> Transforms:
    """The matrices of `tile` results, of the taps of each phase of the stride."""
    phases = [minimal(tile, len(range(p, TAPS, stride))) for p in range(stride)]
    side, reach = sum(len(x.image) for x in phases), stride * (tile - 1) + TAPS
    made = Transforms(
        np.zeros((side, reach)), np.zeros((side, TAPS)), np.zeros((tile, side))
    )
    first = 0
    for phase, each in enumerate(phases):
        rows = slice(first, first + len(each.image))
        made.image[rows, phase::stride] = each.image
        made.filters[rows, phase::stride] = each.filters
        made.result[:, rows] = each.result
        first = rows.stop
    return made


def minimal(tile: int, taps: int) -> Transforms:
    """Toom and Cook's multiplication of polynomials, transposed, for m = tile.

    Of one tap a result is a product, and there is nothing to do around it.
    """
    if taps == 1:
        return Transforms(np.eye(tile), np.ones((tile, 1)), np.eye(tile))
    side = tile + taps - 1
    points = POINTS[: side - 1]
    others = [[a for a in points if a != point] for point in points]
    pairs = zip(points, others, strict=True)
    scales = [float(np.prod(np.subtract(point, rest))) for point, rest in pairs]
    powers = np.array([[float(a) ** i for i in range(side)] for a in points])
    image = np.zeros((side, side))
    for place, roots in enumerate([*others, points]):
        coefficients = np.poly(roots)[::-1]
        image[place, : len(coefficients)] = np.round(coefficients)
    filters, result = np.zeros((side, taps)), np.zeros((tile, side))
    filters[:-1] = powers[:, :taps] / np.array(scales)[:, None]
    result[:, :-1] = powers[:, :tile].T
    filters[-1, -1] = result[-1, -1] = 1
    return Transforms(image, filters, result)


@dataclass(frozen=True)
class TransformedFilters(Derivation):
    """Filters [f, c, 3, 3] as [p, p, c, f], p x p places: G g G', rounded once."""

    tile: int
    stride: int = 1

    def __str__(self) -> str:
        return f"winograd[{self.tile}, {self.stride}]"

    def shape(self, given: Shape) -> Shape:
        side = places_along(self.tile, self.stride)
        return (side, side, given[1], given[0])

    def of(self, array: Stored) -> Stored:
        made = np.empty(self.shape(array.shape), array.dtype)
        matrix = transforms(self.tile, self.stride).filters
        fill_transformed(made, array, matrix, np.float64)
        return made


def fill_transformed(
    made: Array, filters: Stored, matrix: Array, wide: type[np.floating]
) -> None:
    """made[a, b, c, f] = M w M' of filters [f, c, 3, 3], some at a time, in `wide`.

    As two products over all channels and filters, which lie innermost: einsum would
    move each of the numbers several times.
    """
    side, step = len(matrix), max(1, BLOCK // max(1, made[..., 0].size))
    matrix = matrix.astype(wide)
    for first in range(0, filters.shape[0], step):
        block = np.asarray(filters[first : first + step])
        taps = np.ascontiguousarray(block.transpose(2, 3, 1, 0), wide)
        rows = (matrix @ taps.reshape(TAPS, -1)).reshape(side, TAPS, -1)
        shape = (side, side, *taps.shape[2:])
        made[..., first : first + step] = np.matmul(matrix, rows).reshape(shape)


def winograd(
    b: Builder,
    x: Tensor,
    w: Tensor,
    window: Window,
    tile: int,
    bias: Tensor | None,
    groups: int = 1,
) -> Tensor:
    """The convolution of x [n, h, w, c] with constant w [f, c / groups, 3, 3].

    bias: [f].  Of floats of 16 bits all between is in 32, and the result is rounded
    once.
    """
    counts, wide, stride = counts_of(window, tile), computed_as(x.dtype), steps(window)
    given, name = transforms(tile, stride), f"winograd{tile}.{stride}"
    image = constant_tensor(given.image.astype(wide), f"{name}.image")
    result = constant_tensor(given.result.astype(wide), f"{name}.result")
    image, result = changed(image, Coefficients()), changed(result, Coefficients())
    if w.dtype != wide:
        w = changed(w, Cast(wide))
    step = tile * stride
    places = transformed(b, with_room(b, x, window, tile), image, counts, step)
    filters = changed(w, TransformedFilters(tile, stride))
    whole = products(b, places, filters, result, groups)
    if bias is not None:
        placed = BroadcastOperand(b.cast(bias, wide), (whole.rank - 1,))
        whole = combine(b, add, whole.shape, wide, whole, placed)
    return image_of(b, b.cast(whole, x.dtype), window)


def steps(window: Window) -> int:
    """The stride along each axis."""
    (stride,) = set(window.strides)
    return stride


def counts_of(window: Window, tile: int) -> list[int]:
    """Tiles along each axis of the result."""
    return [-(-extent // tile) for extent in window.result]


def with_room(
    b: Builder, x: Tensor, window: Window, tile: int, number: Number = 0
) -> Tensor:
    """An image [n, h, w, c] with all that its tiles read around it."""
    high = room(window, counts_of(window, tile), tile)
    return b.pad(x, [0, *window.low, 0], [0, *high, 0], number)


def products(
    b: Builder, places: Tensor, filters: Tensor, result: Tensor, groups: int = 1
) -> Tensor:
    """Tiles y [n, y, m, x, m, f] of V [n, y, x, p, p, c], U, and matrix A."""
    if groups == 1:
        made = b.einsum("nyxabc,abck->nyxabk", places, filters, dtype=result.dtype)
    else:
        *outer, depth, features = filters.shape
        places = b.reshape(places, (*places.shape[:-1], groups, depth))
        filters = b.reshape(filters, (*outer, depth, groups, features // groups))
        made = b.einsum("nyxabgc,abcgk->nyxabgk", places, filters, dtype=result.dtype)
        made = b.reshape(made, (*made.shape[:-2], features))
    rows = b.einsum("ia,nyxabk->nyxibk", result, made)
    return b.einsum("jb,nyxibk->nyixjk", result, rows)


def image_of(b: Builder, whole: Tensor, window: Window) -> Tensor:
    """Tiles [n, y, m, x, m, f] as the result [n, h, w, f].

    Cut off where images are of any size, though tiles of some sizes end with them.
    """
    n, rows, m, columns, _, made = whole.shape
    joined = b.reshape(whole, (n, rows * m, columns * m, made))
    shape = (n, *window.result, made)
    if joined.shape == shape and not window.whole:
        return joined
    return b.first(joined, shape) if window.whole else b.slice(joined, [0] * 4, shape)


def add(one: Scalar, other: Scalar) -> Scalar:
    return one + other


def room(window: Window, counts: Sequence[int], tile: int) -> list[int]:
    """How much the last tiles read behind the image, along each axis.

    As much as any of them may where images are of any size.
    """
    stride = steps(window)
    if window.whole:
        return [high + stride * (tile - 1) for high in window.high]
    extents = zip(counts, window.size, window.low, strict=True)
    reach = ((stride * (tile * count - 1) + TAPS, *other) for count, *other in extents)
    return [max(0, end - size - low) for end, size, low in reach]


def transformed(
    b: Builder, x: Tensor, matrix: Tensor, counts: Sequence[int], step: int
) -> Tensor:
    """The tiles of an image [n, h, w, c] as V [n, y, x, p, p, c], of B's type.

    step: from a tile of the image to the next.  They overlap: what lies below each
    other is added first, for all columns.
    """
    n, _, wide, channels = x.shape
    side = matrix.shape[0]
    high = sums(b, matrix, x, (n, counts[0], side, wide, channels), "nyawci", step)
    shape = (n, *counts, side, side, channels)
    return sums(b, matrix, high, shape, "nyxabcj", step)


def sums(
    b: Builder, matrix: Tensor, x: Tensor, shape: Sequence[int], axes: str, step: int
) -> Tensor:
    """B along one axis of x: for rows (axes nyawci), or columns (nyxabcj) of tiles."""
    at = dict(zip(axes, map(ir.AffineDimExpr.get, range(len(axes))), strict=True))
    if "w" in at:
        left, read = "ai", [at["n"], at["y"] * step + at["i"], at["w"], at["c"]]
    else:
        left = "bj"
        read = [at["n"], at["y"], at["a"], at["x"] * step + at["j"], at["c"]]
    free = len(shape)
    out = b.full(shape, 0, matrix.dtype)

    def body(coefficient: Scalar, element: Scalar, total: Scalar) -> Scalar:
        return total + coefficient * element.cast(matrix.dtype)

    (made,) = b.generic(
        [
            (matrix, Map.get(len(at), 0, [at[letter] for letter in left])),
            (x, Map.get(len(at), 0, read)),
        ],
        [(out, Map.get(len(at), 0, list(at.values())[:free]))],
        [PARALLEL] * free + [REDUCTION],
        body,
    )
    return made
