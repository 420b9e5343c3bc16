"""Filters of Winograd's method: made once, when the weights are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nanoloom.graph.winograd_cost import Axes
from nanoloom.graph.winograd_transforms import (
    INT16,
    Filtering,
    IntegerTransforms,
    integer_transforms,
    transforms,
)
from nanoloom.weights.chunked_conversion import Array, Stored
from nanoloom.weights.weight import Derivation, Shape

BLOCK = 1 << 20  # numbers of filters that are transformed at once


@dataclass(frozen=True)
class TransformedFilters(Derivation):
    """Filters [f, c, taps...] as [places..., c, f]: G g G', rounded once.

    Axes of one tap are left out.
    """

    axes: Axes

    def __str__(self) -> str:
        return f"winograd[{', '.join(map(str, self.axes))}]"

    def shape(self, given: Shape) -> Shape:
        return places_of(self.axes, given)

    def of(self, array: Stored) -> Stored:
        made = np.empty(self.shape(array.shape), array.dtype)
        matrices = [transforms(axis).filters for axis in moved(self.axes)]
        fill_transformed(made, array, matrices, np.float64)
        return made


def moved(axes: Axes) -> list[Filtering]:
    """Those of several taps."""
    return [axis for axis in axes if axis.taps > 1]


def places_of(axes: Axes, given: Shape) -> Shape:
    """The shape of transformed filters."""
    return (*(axis.places for axis in moved(axes)), given[1], given[0])


def fill_transformed(
    made: Array, filters: Stored, matrices: Sequence[Array], wide: type[np.floating]
) -> None:
    """made[a, b, c, f] = M w M' of filters [f, c, taps...], some at a time, in `wide`.

    As products over all channels and filters, which lie innermost: einsum would move
    each of the numbers several times.
    """
    step = max(1, BLOCK // max(1, made[..., 0].size))
    matrices = [matrix.astype(wide) for matrix in matrices]
    taps = [matrix.shape[1] for matrix in matrices]
    for first in range(0, filters.shape[0], step):
        block = np.asarray(filters[first : first + step])
        last = block.reshape(*block.shape[:2], *taps).transpose(
            *range(2, 2 + len(taps)), 1, 0
        )
        now = np.ascontiguousarray(last, wide)
        for k, matrix in enumerate(matrices):
            before, behind = now.shape[:k], now.shape[k + 1 :]
            rows = matrix @ now.reshape(*before, matrix.shape[1], -1)
            now = rows.reshape(*before, len(matrix), *behind)
        made[..., first : first + step] = now


def of_integers(axis: Filtering) -> IntegerTransforms:
    made = integer_transforms(axis)
    assert made is not None, "graph/winograd.py takes no others"
    return made


@dataclass(frozen=True)
class IntegerFilters(Derivation):
    """Filters [f, c, taps...] of at most 9 bits as U [places..., c, f] in int16."""

    axes: Axes

    def __str__(self) -> str:
        return f"winograd[{', '.join(map(str, self.axes))}, int16]"

    def shape(self, given: Shape) -> Shape:
        return places_of(self.axes, given)

    def dtype(self, given: np.dtype) -> np.dtype:
        return INT16

    def of(self, array: Stored) -> Stored:
        made = np.empty(self.shape(array.shape), INT16)
        matrices = [of_integers(axis).filters for axis in moved(self.axes)]
        fill_transformed(made, array, matrices, np.float32)  # exact: below 2^24
        return made
