"""A row of elements as keys, which are made where they are read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.lanes import each, load
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.slices import element
from nanoloom.linalg.builder.sort_key import key
from nanoloom.linalg.builder.tensor import Tensor


@dataclass(frozen=True)
class Row:
    """Elements along the last axis as keys, as wide as they are.

    where: the places along the other axes.  largest: which of them come first, where
    they are no keys already.
    """

    x: Tensor
    where: tuple[ir.Value, ...]
    kind: np.dtype
    largest: bool | None = None

    def at(self, b: Builder, place: Scalar) -> Scalar:
        x = element(b, self.x, [*self.where, place.index()])
        return x if self.largest is None else key(x, self.largest, self.kind)

    def lanes(self, b: Builder, begin: Scalar) -> Scalar:
        x = load(b, self.x, [*self.where, begin.index()])
        return x if self.largest is None else key(x, self.largest, self.kind, each)
