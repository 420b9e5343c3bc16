"""What becomes of a weight: changes that more than one operator or stage makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nanoloom.weights.chunked_conversion import Array, Converted, Stored
from nanoloom.weights.weight import Derivation, Shape, Weight


@dataclass(frozen=True)
class Coefficients(Derivation):
    """The same few numbers, which the code is made for: they are part of its text."""

    def __str__(self) -> str:
        return "coefficients"

    def shape(self, given: Shape) -> Shape:
        return given

    def of(self, array: Stored) -> Stored:
        return array


@dataclass(frozen=True)
class Reshaped(Derivation):
    """The same elements in row-major order under another shape."""

    wanted: Shape

    def __str__(self) -> str:
        return f"reshaped{list(self.wanted)}"

    def shape(self, given: Shape) -> Shape:
        return self.wanted

    def of(self, array: Stored) -> Stored:
        return array.reshape(self.wanted)


@dataclass(frozen=True)
class Transposed(Derivation):
    """numpy.transpose: a view."""

    order: tuple[int, ...]

    def __str__(self) -> str:
        return f"transposed{list(self.order)}"

    def shape(self, given: Shape) -> Shape:
        return tuple(given[d] for d in self.order)

    def of(self, array: Stored) -> Stored:
        return array.transpose(self.order)


@dataclass(frozen=True)
class Sliced(Derivation):
    """out[i, ...] = x[starts[0] + i * steps[0], ...]: a view; steps may be negative."""

    starts: tuple[int, ...]
    wanted: Shape
    steps: tuple[int, ...]

    def __str__(self) -> str:
        return f"slice{list(self.starts)}{list(self.wanted)}{list(self.steps)}"

    def shape(self, given: Shape) -> Shape:
        return self.wanted

    def of(self, array: Stored) -> Stored:
        return array[tuple(map(places_of, self.starts, self.steps, self.wanted))]


@dataclass(frozen=True)
class Cast(Derivation):
    """Every number in another type, rounded to nearest even by numpy."""

    to: np.dtype

    def __str__(self) -> str:
        return str(self.to)

    def shape(self, given: Shape) -> Shape:
        return given

    def dtype(self, given: np.dtype) -> np.dtype:
        return self.to

    def of(self, array: Stored) -> Stored:
        return Converted(array, self.to, self.converted)

    def converted(self, numbers: Array) -> Array:
        return numbers.astype(self.to)


@dataclass(frozen=True)
class Minus(Derivation):
    """Numbers minus those of their filter, the first dimension; exact in `to`.

    numbers: one for each filter, or one for all.
    """

    numbers: tuple[int, ...]
    to: np.dtype

    def __str__(self) -> str:
        return f"minus{list(self.numbers)}"

    def shape(self, given: Shape) -> Shape:
        return given

    def dtype(self, given: np.dtype) -> np.dtype:
        return self.to

    def of(self, array: Stored) -> Stored:
        if len(self.numbers) == 1:
            return Converted(array, self.to, self.less)
        return self.less(np.asarray(array))

    def less(self, array: Array) -> Array:
        """Of whole filters, or of any numbers where all have one."""
        numbers = np.array(self.numbers, np.int16)
        if len(self.numbers) > 1:
            numbers = numbers.reshape(-1, *(1,) * (array.ndim - 1))
        return (array.astype(np.int16) - numbers).astype(self.to)


@dataclass(frozen=True)
class Sum(Derivation):
    """int32 sums along some axes, times a number, modulo 2^32."""

    axes: tuple[int, ...]
    times: int = 1

    def __str__(self) -> str:
        return f"sums{list(self.axes)}by{self.times}"

    def shape(self, given: Shape) -> Shape:
        return tuple(n for d, n in enumerate(given) if d not in self.axes)

    def dtype(self, given: np.dtype) -> np.dtype:
        return np.dtype(np.int32)

    def of(self, array: Stored) -> Stored:
        sums = np.asarray(array).sum(self.axes, dtype=np.int32)
        return np.asarray(sums * np.int32(self.times))


def reshaped(weight: Weight, shape: Sequence[int]) -> Weight:
    """A weight under another shape: itself, if that is its own.

    Of several shapes one behind the other only the last one is kept.
    """
    wanted, changes = tuple(map(int, shape)), weight.changes
    if changes and isinstance(changes[-1], Reshaped):
        weight = Weight(weight.source, changes[:-1])
    return weight if weight.shape == wanted else weight.then(Reshaped(wanted))


def flat(weight: Weight) -> Weight:
    """The weight whose bytes are the same, without a shape of its own."""
    while weight.changes and isinstance(weight.changes[-1], Reshaped):
        weight = Weight(weight.source, weight.changes[:-1])
    return weight


def places_of(start: int, step: int, count: int) -> slice:
    """The indices start, start + step, ..., so many: of a constant, a view."""
    end = start + count * step
    return slice(start, end if end >= 0 else None, step)
