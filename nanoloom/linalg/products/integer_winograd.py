"""Winograd's method on integers (winograd.py has it on floats): exact.

    V = B d B'      M[place] = V[place] @ U[place]      2^bits y = A M A' modulo 2^32

B has integers.  U = G g G' has if each row of G is multiplied by some number; A makes
up for what its place is then too large by, so that all of y is D^2 times too large, D
being the least common multiple of G's denominators: 2 for tiles of 2 x 2, 24 for 4 x 4,
1 and 6 of stride 2.
Sums wrap, which leaves them exact modulo 2^32.  There the odd part of D has an inverse:
A is multiplied by it.  The even part, 2^bits, is shifted out, and y is left where it
has so many bits less than 32: graph/winograd.py sees to it.

V and U have 16 bits, for the numbers of a row of B without their signs are at most 10
together, those of G at most 7: 255 * 10^2 and 255 * 7^2 fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import lcm

import numpy as np

from nanoloom.graph.winograd import places_along
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.tensor import Tensor, changed, constant_tensor
from nanoloom.linalg.builder.window import Window
from nanoloom.linalg.products.winograd import (
    counts_of,
    fill_transformed,
    image_of,
    products,
    steps,
    transformed,
    transforms,
    with_room,
)
from nanoloom.weights.chunked_conversion import Array, Stored
from nanoloom.weights.weight import Derivation, Shape

INT16, INT32 = np.dtype(np.int16), np.dtype(np.int32)
MODULUS = 1 << 32
PARTS = range(1, 1 << 10)  # that G's numbers are multiples of: 24 are needed


@dataclass(frozen=True)
class IntegerTransforms:
    """The matrices of one dimension, results being 2^(bits / 2) times too large.

    image: B and filters: G in int16, result: A in int32 modulo 2^32, of the shapes of
    Transforms.
    """

    image: Array
    filters: Array
    result: Array
    bits: int


@cache
def integer_transforms(tile: int, stride: int = 1) -> IntegerTransforms:
    given = transforms(tile, stride)
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
        2 * (even.bit_length() - 1),
    )


def denominator(row: Array) -> int:
    """The least number that makes integers of a row of fractions."""
    for number in PARTS:
        if np.abs(row * number - np.rint(row * number)).max() < 1e-9:
            return number
    raise AssertionError(f"{row} are no fractions")


def odd_of(number: int) -> int:
    return number // (number & -number)


@dataclass(frozen=True)
class IntegerFilters(Derivation):
    """Filters [f, c, 3, 3] of at most 9 bits as U [p, p, c, f] in int16."""

    tile: int
    stride: int = 1

    def __str__(self) -> str:
        return f"winograd[{self.tile}, {self.stride}, int16]"

    def shape(self, given: Shape) -> Shape:
        side = places_along(self.tile, self.stride)
        return (side, side, given[1], given[0])

    def dtype(self, given: np.dtype) -> np.dtype:
        return INT16

    def of(self, array: Stored) -> Stored:
        made = np.empty(self.shape(array.shape), INT16)
        matrix = integer_transforms(self.tile, self.stride).filters
        fill_transformed(made, array, matrix, np.float32)  # exact: below 2^24
        return made


def integer_winograd(
    b: Builder,
    x: Tensor,
    around: int,
    w: Tensor,
    window: Window,
    tile: int,
    groups: int = 1,
) -> Tensor:
    """Sums [n, result..., f] in int32 of x [n, h, w, c] of 8 bits with constant w.

    around: the number that stands in the padding.  w: [f, c / groups, 3, 3] of at most
    9 bits.
    """
    stride = steps(window)
    given, name = integer_transforms(tile, stride), f"winograd{tile}.{stride}"
    image = constant_tensor(given.image, f"{name}.image.int16")
    result = constant_tensor(given.result, f"{name}.result.int32")
    padded = with_room(b, x, window, tile, around)
    counts, step = counts_of(window, tile), tile * stride
    places = transformed(b, padded, image, counts, step)
    filters = changed(w, IntegerFilters(tile, stride))
    whole = products(b, places, filters, result, groups)

    def shifted(sum_: Scalar) -> Scalar:
        return sum_ >> given.bits

    return image_of(b, b.elementwise(shifted, whole), window)
