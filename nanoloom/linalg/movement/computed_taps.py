"""Tables of Resize that a program computes, where only a run knows the sizes.

The formulas are those of tables that are known (sampling.py), in bodies of small
kernels of their own: an element for each of the result along one axis, and each tap.
They read the extents from a tensor, which is a constant for one sample of the sizes:
numbers in the code would be folded to quotients, which no size is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import PARALLEL, Builder, Map
from nanoloom.linalg.builder.indexing import INT64, position
from nanoloom.linalg.builder.scalar import BOOL, Scalar, constant
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.movement.coordinate_arithmetic import (
    FLOAT64,
    ceil,
    outside,
    scalar,
    where,
)
from nanoloom.linalg.movement.sampling import (
    ROUNDINGS,
    Axis,
    Extents,
    Filter,
    placed,
    steps_of,
)

COLUMNS = 8  # taps that are written out; more are an axis of a table


@dataclass(frozen=True)
class Tables:
    """Tensors of indices and of weights: one of each tap, [resized], or [resized, taps]
    where `is_long`."""

    indices: tuple[Tensor, ...]
    weights: tuple[Tensor, ...]
    is_long: bool


@dataclass(frozen=True)
class ComputedAxis:
    """An axis whose extents are sizes, and how coordinates of it are transformed.

    numbers: its extents, before and behind, int64 [2].
    """

    axis: Axis
    transform: str
    builder: Builder
    numbers: ir.Value

    def extents(self) -> Extents:
        """In a body."""
        size, resized = self.number(0), self.number(1)
        scale = resized / size if self.axis.is_quotient else self.axis.scale
        return Extents(size, resized, scale, self.axis.roi)

    def number(self, place: int) -> Scalar:
        at = [constant(place, INT64)]
        return self.builder.load(self.numbers, INT64, at).cast(FLOAT64)

    def last(self) -> Scalar:
        return self.number(0) - 1.0

    def at(self, place: Scalar) -> Scalar:
        """The coordinate of an element of the result."""
        found = placed(place.cast(FLOAT64), self.extents(), self.transform)
        assert isinstance(found, Scalar)
        return found

    def index(self, coordinate: Scalar) -> Scalar:
        """The element at a whole coordinate, or the one at the border."""
        return coordinate.maximum(0.0).minimum(self.last()).cast(INT64)

    def nearest(self, rounding: str) -> Tensor:
        """One element for each, [resized]."""

        def body(place: Scalar) -> Scalar:
            return self.index(scalar(ROUNDINGS[rounding](self.at(place), scale)))

        scale = self.axis.scale
        return self.builder.generate((self.axis.resized,), INT64, body)

    def outside(self) -> Tensor:
        """Whether to extrapolate, [resized]."""

        def body(place: Scalar) -> Scalar:
            return outside(self.at(place), self.last())

        return self.builder.generate((self.axis.resized,), BOOL, body)


def computed_axis(b: Builder, axis: Axis, transform: str) -> ComputedAxis:
    numbers = np.array([axis.size, axis.resized], np.int64)
    return ComputedAxis(axis, transform, b, b.value(b.constant(numbers)))


@dataclass(frozen=True)
class ComputedTaps:
    """A filter along such an axis, as `taps` of sampling.py has it."""

    of: ComputedAxis
    weight: Filter
    reach: int
    antialias: bool
    exclude: bool

    def tables(self, dtype: np.dtype) -> Tables:
        """Weights in a type."""
        axis = self.of.axis
        if self.antialias and axis.is_quotient:
            # So many at most: those that are too far away weigh nothing.
            far = self.reach * -(-axis.size // axis.resized)
            return self.long(dtype, 1 - far, 2 * far)
        shrink = min(axis.scale, 1.0) if self.antialias else 1.0
        steps = [int(step) for step in steps_of(shrink, self.reach, self.antialias)]
        if len(steps) > COLUMNS:
            return self.long(dtype, steps[0], len(steps))
        return self.short(dtype, steps)

    def weighed(self, x: Scalar, raw: Scalar) -> Scalar:
        """How much a neighbour of a coordinate counts, before they are normalized."""
        distance = raw - x
        if self.antialias:
            distance = distance * scalar(self.of.extents().scale).minimum(1.0)
        found = scalar(self.weight(distance))
        if self.exclude:
            found = scalar(where(outside(raw, self.of.last()), 0.0, found))
        return found

    @property
    def is_normalized(self) -> bool:
        return self.antialias or self.exclude

    def short(self, dtype: np.dtype, steps: Sequence[int]) -> Tables:
        """A pair of tensors for each tap."""
        b = self.of.builder
        count = self.of.axis.resized
        kinds = [*[INT64] * len(steps), *[dtype] * len(steps)]
        empty = [Tensor((count,), kind, b.empty((count,), kind)) for kind in kinds]

        def body(*_: Scalar) -> list[Scalar]:
            x = self.of.at(position(0))
            left = ceil(x) - 1.0
            raws = [left + float(step) for step in steps]
            weights = [self.weighed(x, raw) for raw in raws]
            if self.is_normalized:
                total = divisor(reduce(lambda one, more: one + more, weights))
                weights = [weight / total for weight in weights]
            indices = [self.of.index(raw) for raw in raws]
            return [*indices, *[weight.cast(dtype) for weight in weights]]

        outputs = [(x, Map.get_identity(1)) for x in empty]
        made = tuple(b.generic([], outputs, [PARALLEL], body))
        return Tables(made[: len(steps)], made[len(steps) :], is_long=False)

    def long(self, dtype: np.dtype, first: int, count: int) -> Tables:
        """One pair of tensors; first: the step from the left neighbour, below 0."""
        b = self.of.builder
        shape = (self.of.axis.resized, count)

        def raw(place: Scalar, tap: Scalar) -> tuple[Scalar, Scalar]:
            x = self.of.at(place)
            return x, ceil(x) - 1.0 + (tap - -first).cast(FLOAT64)

        def weight(place: Scalar, tap: Scalar) -> Scalar:
            return self.weighed(*raw(place, tap))

        def index(place: Scalar, tap: Scalar) -> Scalar:
            return self.of.index(raw(place, tap)[1])

        weights = b.generate(shape, FLOAT64, weight)
        total = b.reduce(lambda one, more: one + more, weights, [1], 0.0)
        shares = b.elementwise(lambda w, t: w / divisor(t), weights, total)
        indices = b.generate(shape, INT64, index)
        return Tables((indices,), (b.cast(shares, dtype),), is_long=True)


def divisor(total: Scalar) -> Scalar:
    """A sum of weights; 1 where there are none."""
    return scalar(where(total.equal(0.0), 1.0, total))
