"""Shapes of an image as tiles, each with a height and a width.

    [y, m, x, m, f]  is  [y m, x m, f]        the same bytes

Winograd's method makes tiles; where the image lies in a larger one, the places of tiles
are a multiple of each other as well, so that they can be written there.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from nanoloom.kernels.linalg_query import Op
from nanoloom.mlir import ir


def joins_tiles(view: Op) -> bool:
    """Whether a shape is an image's, of tiles with a height and a width."""
    made = ir.RankedTensorType(view.operation.results[0].type).shape
    shape = ir.RankedTensorType(view.operation.operands[0].type).shape
    counts = sorted(len(group) for group in groups_of(shape, made))
    return counts[-2:] == [2, 2] and sum(counts) == len(made) + 2


def groups_of(shape: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """Which dimensions of a shape are one of an image's, whose extents of 1 are left.

    Each by itself, if the shape is the image's without some of those.
    """
    long = [size for size in sizes if size != 1]
    if is_reduced(shape, sizes):
        return [[d] for d in range(len(shape))]
    if not long:
        return []  # a single number
    groups: list[list[int]] = [[] for _ in long]
    place = 0
    for d, n in enumerate(shape):
        full = prod(shape[e] for e in groups[place]) == long[place]
        if full and n != 1 and place + 1 < len(long):
            place += 1
        groups[place].append(d)
    return groups


def is_reduced(shape: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether a shape is another one without some of its extents of 1."""
    left = list(shape)
    for size in sizes:
        if left and left[0] == size:
            left.pop(0)
        elif size != 1:
            return False
    return not left
