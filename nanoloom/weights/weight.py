"""Weights: arrays that are known while compiling, and what is made of them.

    weight.then(Transposed((1, 0))).then(Cast(bfloat16)).then(Packing(...))

is a value: nothing is read or computed before it is written, and then in pieces.  Equal
weights, the same source changed in the same ways, are one array of the program.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nanoloom.weights.chunked_conversion import Array, Stored, pieces

Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Source:
    """An array of the model, loaded only when it is wanted.

    origin: the object that holds it; sources of the same one are equal.  name: "" for
    none.  release: gives the memory back that reading it took.
    """

    origin: object
    name: str
    shape: Shape
    dtype: np.dtype
    load: Callable[[], Array]
    release: Callable[[], None] = lambda: None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and self.origin is other.origin

    def __hash__(self) -> int:
        return id(self.origin)


class Derivation(ABC):
    """What is made of an array, as a value; its text tells one from another."""

    @abstractmethod
    def shape(self, given: Shape) -> Shape:
        """Of what it makes of an array of such a shape."""

    def dtype(self, given: np.dtype) -> np.dtype:
        """The type of what it makes of such numbers."""
        return given

    @abstractmethod
    def of(self, array: Stored) -> Stored:
        """What it makes of an array: a view or a Converted one, where it can."""

    @property
    def cuts(self) -> tuple[tuple[int, ...], int] | None:
        """Dimensions along which pieces are changed by themselves, None if none are.

        They give the result one behind the other; the last one is cut at multiples of
        the number.
        """
        return None


@dataclass(frozen=True)
class Weight:
    """A source and its changes, the first one first."""

    source: Source
    changes: tuple[Derivation, ...] = ()

    @cached_property
    def shape(self) -> Shape:
        shape = self.source.shape
        for change in self.changes:
            shape = change.shape(shape)
        return shape

    @cached_property
    def dtype(self) -> np.dtype:
        dtype = self.source.dtype
        for change in self.changes:
            dtype = change.dtype(dtype)
        return dtype

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def name(self) -> str:
        """The source's with what was done to it; "" if that has none."""
        words = [self.source.name, *map(str, self.changes)]
        return ".".join(words) if self.source.name else ""

    def then(self, change: Derivation) -> Weight:
        """This one, changed."""
        return replace(self, changes=(*self.changes, change))

    def array(self) -> Array:
        """All of it."""
        return np.asarray(self.stored(self.changes))

    def stored(self, changes: tuple[Derivation, ...]) -> Stored:
        """The source with some of the changes, views and conversions not yet made."""
        made: Stored = self.source.load()
        for change in changes:
            made = change.of(made)
        return made

    def written(self) -> Generator[Array]:
        """The array, in parts that follow each other."""
        last = self.changes[-1] if self.changes else None
        if last is None or last.cuts is None:
            whole = self.stored(self.changes)
            for piece in pieces(whole, range(whole.ndim), 1):
                yield np.ascontiguousarray(piece)
            return
        dims, step = last.cuts
        for piece in pieces(self.stored(self.changes[:-1]), dims, step):
            yield np.asarray(last.of(np.asarray(piece)))


def weight_of(array: Array, name: str = "") -> Weight:
    """An array that is there already."""
    return Weight(Source(array, name, array.shape, array.dtype, lambda: array))
