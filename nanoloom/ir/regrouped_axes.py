"""Shapes of the same bytes: which axes of one are an axis of the other.

    [y, m, x, m, f]  is  [y m, x m, f]

Where the second one is a block of a larger tensor, places along its axes are a multiple
of each other, so that the first one can be written there: each axis is cut in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from nanoloom.ir.linalg_query import Op
from nanoloom.ir.mlir import ir

COLLAPSE = "tensor.collapse_shape"


def drops_ones(view: Op) -> bool:
    """Whether a shape is another without some extents of 1."""
    values = view.operation.operands[0], view.operation.results[0]
    one, other = (ir.RankedTensorType(value.type).shape for value in values)
    return [n for n in one if n != 1] == [n for n in other if n != 1]


def joins_axes(view: Op) -> bool:
    """Whether some axes of a shape are one in another, as both shapes tell."""
    made = ir.RankedTensorType(view.operation.results[0].type).shape
    shape = ir.RankedTensorType(view.operation.operands[0].type).shape
    words = view.operation.attributes["reassociation"]
    said = [[d.value for d in group] for group in words]  # type: ignore[union-attr] - MLIR's stubs know no kinds of attributes
    return 0 not in shape and groups_of(shape, made) == said


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


def matched(few: Sequence[int], many: Sequence[int]) -> list[int]:
    """For each extent of a shape, which one it is of the same with more of 1."""
    found = places_in(few, many)
    assert len(found) == len(few), "one is the other without extents of 1"
    return found


def is_reduced(few: Sequence[int], many: Sequence[int]) -> bool:
    """Whether a shape is another one without some of its extents of 1."""
    found = places_in(few, many)
    left = (size for place, size in enumerate(many) if place not in found)
    return len(found) == len(few) and all(size == 1 for size in left)


def places_in(few: Sequence[int], many: Sequence[int]) -> list[int]:
    """Where the first extents of one shape occur, in order, in another one."""
    found: list[int] = []
    for place, size in enumerate(many):
        if len(found) < len(few) and few[len(found)] == size:
            found.append(place)
    return found
