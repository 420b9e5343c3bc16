"""Keys beside their places, in one tensor: [sides, n, 2]."""

from __future__ import annotations

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.slices import element, index, with_element
from nanoloom.linalg.builder.tensor import Tensor

Spot = tuple[ir.Value, int]  # which pair, on which side
KEY, PLACE = 0, 1  # of a pair


def room(b: Builder, sides: int, count: int, dtype: np.dtype) -> Tensor:
    """Memory for pairs: [sides, count, 2].  Of two sides one is sorted into the other.

    Two tensors of nothing would be one buffer to MLIR, whatever is written into them.
    """
    shape = sides, count, 2
    return Tensor(shape, dtype, b.empty(shape, dtype))


def part_of(b: Builder, x: Tensor, i: ir.Value, part: int, side: int = 0) -> Scalar:
    return element(b, x, [index(side), i, index(part)])


def with_pair(
    b: Builder, x: Tensor, at: ir.Value, key: Scalar, place: Scalar, side: int = 0
) -> Tensor:
    x = with_element(b, x, [index(side), at, index(KEY)], key)
    return with_element(b, x, [index(side), at, index(PLACE)], place)


def copied(b: Builder, x: Tensor, source: Spot, into: Spot) -> Tensor:
    """x with a pair at another spot, too."""
    key, place = (part_of(b, x, source[0], part, source[1]) for part in (KEY, PLACE))
    return with_pair(b, x, into[0], key, place, into[1])
