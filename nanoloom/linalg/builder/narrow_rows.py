"""Rows that fill no vector by themselves: what is reduced to them, or read along them.

    [500, 6]  ->  [50, 60]  ->  [60] = [10, 6]  ->  [6]

Some rows are one that vectors fill; what is found for each of its numbers is reduced
once more.  The last ones, fewer than are one, are a piece of their own:

    [997, 6]  ->  [124, 48] and [5, 6]

For known sizes: they say how many rows are one.
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
    """A tensor in shapes to compute in: [outer, extent / parts, parts * inner], and
    [outer, extent % parts, inner] of what is left.

    shape: its own.  axes: those that are reduced, which lie side by side.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    parts: int

    @property
    def outer(self) -> int:
        return prod(self.shape[: self.axes[0]])

    @property
    def extent(self) -> int:
        return prod(self.shape[d] for d in self.axes)

    @property
    def inner(self) -> int:
        return prod(self.shape[self.axes[-1] + 1 :])

    @property
    def left(self) -> int:
        return self.extent % self.parts

    @property
    def made(self) -> tuple[int, ...]:
        return self.outer, self.extent // self.parts, self.parts * self.inner

    def split(self, b: Builder, x: Tensor) -> list[Tensor]:
        """Its pieces."""
        if not self.left:
            return [b.reshape(x, self.made)]
        wide = self.extent * self.inner
        flat = b.reshape(x, (self.outer, wide))  # of long rows, as far as they go
        least = self.left * self.inner
        main = b.slice(flat, [0, 0], (self.outer, wide - least))
        rest = b.slice(flat, [0, wide - least], (self.outer, least))
        return [
            b.reshape(main, self.made),
            b.reshape(rest, (self.outer, self.left, self.inner)),
        ]

    def join(self, b: Builder, pieces: Sequence[Tensor]) -> Tensor:
        """In the tensor's own shape."""
        long = [b.reshape(x, (self.outer, x.size // self.outer)) for x in pieces]
        return b.reshape(b.concat(long, 1), self.shape)

    def reduce(
        self,
        b: Builder,
        body: Body,
        pieces: Sequence[Tensor],
        start: Number,
        prepare: Callable[[Scalar], Scalar] = same,
        dtype: np.dtype | None = None,
    ) -> Tensor:
        """All pieces: [outer, inner].

        The body is associative: numbers that are far from each other come together.
        """
        last = dtype or pieces[0].dtype
        main, *rest = (
            b.reduce(body, x, [1], start, keepdims=False, dtype=wide, prepare=prepare)
            for wide in [computed_as(last)]
            for x in pieces
        )
        found = b.reshape(main, (self.outer, self.parts, self.inner))
        found = b.reduce(body, found, [1], start, keepdims=False)
        for other in rest:
            found = b.elementwise(body, found, other)
        return b.cast(found, last)

    def spread(self, b: Builder, found: Tensor) -> list[BroadcastOperand]:
        """[outer, inner] where the rows that are one read it, for each piece."""
        wide = (self.outer, self.parts, self.inner)
        rows = b.broadcast_to(b.reshape(found, (self.outer, 1, self.inner)), wide)
        main = BroadcastOperand(b.reshape(rows, (self.outer, self.made[2])), (0, 2))
        if not self.left:
            return [main]
        rest = b.reshape(found, (self.outer, self.inner))
        return [main, BroadcastOperand(rest, (0, 2))]


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
    counts = range(2, most + 1)
    for parts in ([n for n in counts if count % n == 0], counts):
        best = max(parts, default=1, key=lambda n: (filled(n * inner, lanes), n))
        if filled(best * inner, lanes) > filled(inner, lanes):
            return Rows(x.shape, tuple(range(first, last + 1)), best)
    return None


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
    found = rows.reduce(b, body, rows.split(b, x), start, prepare, dtype)
    left = [n for d, n in enumerate(x.shape) if d not in axes]
    return b.reshape(found, left)
