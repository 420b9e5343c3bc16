"""Rows that fill no vector by themselves: what is reduced to them, or read along them.

    [500, 6]  ->  [50, 60]  ->  [60] = [10, 6]  ->  [6]

Some rows are one that vectors fill; what is found for each of its numbers is reduced
once more.  For known sizes: how many rows are one is what they divide by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from nanoloom.linalg.builder.builder import Builder, computed_as
from nanoloom.linalg.builder.lanes import lanes_of
from nanoloom.linalg.builder.placed_operands import BroadcastOperand
from nanoloom.linalg.builder.scalar import Number, Scalar
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.nest.granularity import JAMMED

Body = Callable[[Scalar, Scalar], Scalar]


def same(s: Scalar) -> Scalar:
    return s


@dataclass(frozen=True)
class Rows:
    """A tensor in a shape to compute in: [outer, extent / parts, parts * inner].

    shape: its own.  axes: those that are reduced, which lie side by side.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    parts: int

    @property
    def outer(self) -> int:
        return prod(self.shape[: self.axes[0]])

    @property
    def inner(self) -> int:
        return prod(self.shape[self.axes[-1] + 1 :])

    @property
    def made(self) -> tuple[int, ...]:
        rows = prod(self.shape[d] for d in self.axes) // self.parts
        return self.outer, rows, self.parts * self.inner

    def reduce(
        self,
        b: Builder,
        body: Body,
        x: Tensor,
        start: Number,
        prepare: Callable[[Scalar], Scalar] = same,
        dtype: np.dtype | None = None,
    ) -> Tensor:
        """Of a tensor in the shape to compute in: [outer, inner].

        The body is associative: numbers that are far from each other come together.
        """
        wide = computed_as(dtype or x.dtype)
        found = b.reduce(
            body, x, [1], start, keepdims=False, dtype=wide, prepare=prepare
        )
        found = b.reshape(found, (self.outer, self.parts, self.inner))
        found = b.reduce(body, found, [1], start, keepdims=False)
        return b.cast(found, dtype or x.dtype)

    def spread(self, b: Builder, found: Tensor) -> BroadcastOperand:
        """[outer, inner] where each of the rows that are one reads it."""
        wide = (self.outer, self.parts, self.inner)
        rows = b.broadcast_to(b.reshape(found, (self.outer, 1, self.inner)), wide)
        return BroadcastOperand(b.reshape(rows, (self.outer, self.made[2])), (0, 2))


def rows_of(b: Builder, x: Tensor, axes: Sequence[int]) -> Rows | None:
    """How a tensor is computed with; None where its rows fill vectors as they are, lie
    apart, or are as many as a size says."""
    if b.checks.is_open or not axes or x.size == 0:
        return None
    first, last = min(axes), max(axes)
    if sorted(axes) != list(range(first, last + 1)):
        return None
    inner, lanes = prod(x.shape[last + 1 :]), lanes_of(computed_as(x.dtype))
    if not 1 < inner < lanes:
        return None
    count = prod(x.shape[first : last + 1])
    most = min(JAMMED * lanes // inner, count // JAMMED)
    parts = [n for n in range(1, most + 1) if count % n == 0]
    best = max(parts, default=1, key=lambda n: (filled(n * inner, lanes), n))
    if filled(best * inner, lanes) <= filled(inner, lanes):
        return None
    return Rows(x.shape, tuple(range(first, last + 1)), best)


def filled(count: int, lanes: int) -> float:
    """The part of its vectors that a row fills."""
    return count / (-(-count // lanes) * lanes)


def reduced(
    b: Builder,
    body: Body,
    x: Tensor,
    axes: Sequence[int],
    start: Number,
    *,
    dtype: np.dtype | None = None,
    prepare: Callable[[Scalar], Scalar] = same,
) -> Tensor:
    """`Builder.reduce` of an associative body, without the dimensions that go."""
    rows = rows_of(b, x, axes)
    if rows is None:
        return b.reduce(
            body, x, axes, start, keepdims=False, dtype=dtype, prepare=prepare
        )
    flat = b.reshape(x, rows.made)
    found = rows.reduce(b, body, flat, start, prepare, dtype)
    left = [n for d, n in enumerate(x.shape) if d not in axes]
    return b.reshape(found, left)
