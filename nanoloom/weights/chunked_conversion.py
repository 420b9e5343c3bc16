"""Constants that are computed a piece at a time, when they are written."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray
PIECE = 32 << 20  # bytes of a weight in memory at once; reads whole pages of its rows


@dataclass(frozen=True, eq=False)
class Converted:
    """An array through a function of each of its numbers; views of it compute nothing.

    dtype: what `convert` makes of the source's numbers.
    """

    source: Array | Converted
    dtype: np.dtype
    convert: Callable[[Array], Array]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.source.shape

    @property
    def ndim(self) -> int:
        return self.source.ndim

    @property
    def nbytes(self) -> int:
        return self.source.nbytes // self.source.dtype.itemsize * self.dtype.itemsize

    def reshape(self, shape: Sequence[int]) -> Converted:
        return replace(self, source=self.source.reshape(shape))

    def transpose(self, order: Sequence[int]) -> Converted:
        return replace(self, source=self.source.transpose(order))

    def __getitem__(self, places: Any) -> Converted:
        return replace(self, source=self.source[places])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        made = self.convert(np.asarray(self.source))
        return made if dtype is None else made.astype(dtype, copy=bool(copy))


Stored = Array | Converted  # an array, or what will be one


def pieces(array: Stored, dims: Sequence[int], step: int) -> Generator[Stored]:
    """Parts of an array of about PIECE bytes, cut along its outermost dimensions.

    dims: which those are, in this order; the last is cut at multiples of `step`.
    """
    if not dims or array.nbytes <= PIECE:
        yield array
        return
    dim, *inner = dims
    extent = array.shape[dim]
    least = 1 if inner else step
    many = max(PIECE // (array.nbytes // extent) // least, 1) * least
    for start in range(0, extent, many):
        part = array[(slice(None),) * dim + (slice(start, start + many),)]
        yield from pieces(part, inner, step)
