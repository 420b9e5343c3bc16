"""Constants that are computed a piece at a time, when they are packed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nanoloom.linalg.words.tensor import Array


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


Stored = Array | Converted  # what a parameter is loaded as
