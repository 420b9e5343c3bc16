"""Winograd's method along an axis: what m results of r taps are made of.

    y = A ((G g) * (B d))

with constant matrices: Toom and Cook's multiplication of polynomials, transposed.  Of
stride s the results are sums of s such convolutions, of every s-th number with every
s-th tap, side by side in the matrices; of 3 taps with stride 2:

    y[i] = (d[2i] g[0] + d[2i + 2] g[2])  +  d[2i + 1] g[1]

Sources: S. Winograd, Arithmetic complexity of computations, 1980; A. Lavin and S. Gray,
Fast algorithms for convolutional neural networks, 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import lcm

import numpy as np

Array = np.ndarray
INT16, INT32 = np.dtype(np.int16), np.dtype(np.int32)
# Where the polynomials are multiplied, and at infinity: these have the least roundings.
POINTS = (0, 1, -1, 2, -2, 0.5, -0.5)
MODULUS = 1 << 32
PARTS = range(1, 1 << 12)  # that G's numbers are multiples of


@dataclass(frozen=True)
class Transforms:
    """The matrices, in float64: exact but for G's thirds.

    Of p products for m results.  image: B [p, numbers that the results read].  filters:
    G [p, taps].  result: A [m, p].
    """

    image: Array
    filters: Array
    result: Array

    @property
    def growth(self) -> float:
        """The method's numbers for those of its results, at most."""
        sums = np.abs(self.image).sum(1)
        one = np.abs(self.result) @ (np.abs(self.filters) * sums[:, None])
        return float(one.max())


@dataclass(frozen=True)
class IntegerTransforms:
    """The same in integers, results being 2^bits times too large.

    image and filters in int16, result in int32 modulo 2^32.
    """

    image: Array
    filters: Array
    result: Array
    bits: int


@dataclass(frozen=True)
class Filtering:
    """So many results at once, of so many taps, along an axis."""

    tile: int
    taps: int
    stride: int = 1

    @property
    def phases(self) -> list[int]:
        """How many taps each phase of the stride has."""
        counts = [len(range(p, self.taps, self.stride)) for p in range(self.stride)]
        return [count for count in counts if count]

    @property
    def places(self) -> int:
        """Products."""
        return sum(self.tile + taps - 1 for taps in self.phases)

    @property
    def step(self) -> int:
        """From what a tile reads to what the next one does."""
        return self.tile * self.stride

    @property
    def reach(self) -> int:
        """How many numbers a tile reads."""
        return self.stride * (self.tile - 1) + self.taps

    @property
    def is_known(self) -> bool:
        """Whether there are points enough."""
        return self.tile + max(self.phases) - 2 <= len(POINTS)

    def __str__(self) -> str:
        return f"{self.tile}.{self.taps}.{self.stride}"


@cache
def transforms(axis: Filtering) -> Transforms:
    """The matrices along an axis, of the taps of each phase of the stride."""
    made = Transforms(
        np.zeros((axis.places, axis.reach)),
        np.zeros((axis.places, axis.taps)),
        np.zeros((axis.tile, axis.places)),
    )
    first = 0
    for phase, taps in enumerate(axis.phases):
        each = minimal(axis.tile, taps)
        rows = slice(first, first + len(each.image))
        image = made.image[rows, phase :: axis.stride]
        image[:, : each.image.shape[1]] = each.image
        made.filters[rows, phase :: axis.stride] = each.filters
        made.result[:, rows] = each.result
        first = rows.stop
    return made


def minimal(tile: int, taps: int) -> Transforms:
    """Of stride 1.  Of one tap a result is a product, with nothing to do around it."""
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
        coefficients = np.poly(roots)[::-1]  # exact: powers of two
        image[place, : len(coefficients)] = coefficients
    filters, result = np.zeros((side, taps)), np.zeros((tile, side))
    filters[:-1] = powers[:, :taps] / np.array(scales)[:, None]
    result[:, :-1] = powers[:, :tile].T
    filters[-1, -1] = result[-1, -1] = 1
    return Transforms(image, filters, result)


@cache
def integer_transforms(axis: Filtering) -> IntegerTransforms | None:
    """None where B has fractions.

    Each row of G is multiplied by some number, which makes integers of it; A makes up
    for what its place is then too large by, so that all of y is D times too large, D
    being the least common multiple of G's denominators.  Sums wrap, which leaves them
    exact modulo 2^32.  There the odd part of D has an inverse: A is multiplied by it.
    The even part is 2^bits.
    """
    given = transforms(axis)
    if (given.image % 1).any():
        return None
    parts = [denominator(row) for row in given.filters]
    whole = lcm(*parts)
    even = whole & -whole  # the largest power of two that divides it
    odd = whole // even
    # Each row is multiplied by its denominator and what is odd of the rest.
    times = [part * odd_of(whole // part) for part in parts]
    left = np.array([whole // each for each in times])
    result = np.rint(given.result).astype(np.int64) * left * pow(odd, -1, MODULUS)
    filters = np.rint(given.filters * np.array(times)[:, None])
    return IntegerTransforms(
        given.image.astype(INT16),
        filters.astype(INT16),
        (result % MODULUS).astype(np.uint32).view(INT32),
        even.bit_length() - 1,
    )


def denominator(row: Array) -> int:
    """The least number that makes integers of a row of fractions."""
    for number in PARTS:
        if np.abs(row * number - np.rint(row * number)).max() < 1e-9:
            return number
    raise AssertionError(f"{row} are no fractions")


def odd_of(number: int) -> int:
    return number // (number & -number)
