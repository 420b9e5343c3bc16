"""Softmax, LogSoftmax and Hardmax, in the input's own shape.

Four generics a softmax: row maximum, exp(x - maximum), row sum, scaling.  The reduced
tensors keep the rank they have and are read through maps that drop the reduced
dimensions.  f16 and bf16 stay f32 from the first step to the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nanoloom.linalg.builder.builder import Builder, computed_as
from nanoloom.linalg.builder.indexing import INT64, position
from nanoloom.linalg.builder.narrow_rows import Rows, rows_of, same
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.placed_operands import BroadcastOperand, combine
from nanoloom.linalg.builder.scalar import Number, Scalar, constant, select
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.reductions.arguments import positions


def axes_of(node: Node, x: Tensor) -> list[int]:
    """Before opset 13 everything from `axis` on is one row."""
    if node.version >= 13:
        return [node.int("axis", -1) % x.rank] if x.rank else []
    first = node.int("axis", 1)
    return list(range(first + x.rank if first < 0 else first, x.rank))


def kept(x: Tensor, axes: list[int]) -> tuple[int, ...]:
    return tuple(d for d in range(x.rank) if d not in axes)


@dataclass(frozen=True)
class Plain:
    """A tensor as it is, of whose rows a number is found for each."""

    axes: list[int]

    def split(self, b: Builder, x: Tensor) -> list[Tensor]:
        del b
        return [x]

    def join(self, b: Builder, pieces: Sequence[Tensor]) -> Tensor:
        del b
        return pieces[0]

    def reduce(
        self,
        b: Builder,
        body: Callable[[Scalar, Scalar], Scalar],
        pieces: Sequence[Tensor],
        start: Number,
        prepare: Callable[[Scalar], Scalar] = same,
        dtype: np.dtype | None = None,
    ) -> Tensor:
        (x,) = pieces
        return b.reduce(
            body, x, self.axes, start, keepdims=False, dtype=dtype, prepare=prepare
        )

    def spread(self, b: Builder, found: Tensor) -> list[BroadcastOperand]:
        rank = found.rank + len(self.axes)
        kept = tuple(d for d in range(rank) if d not in self.axes)
        return [BroadcastOperand(found, kept)]


def maximum(b: Builder, rows: Rows | Plain, pieces: Sequence[Tensor]) -> Tensor:
    """Without regard to NaN: exp(NaN - maximum) makes the row's sum NaN by itself."""
    return rows.reduce(
        b,
        lambda sofar, s: select(s > sofar, s, sofar),
        pieces,
        -np.inf,
        dtype=computed_as(pieces[0].dtype),
    )


def row_maximum(b: Builder, x: Tensor, axes: list[int]) -> BroadcastOperand:
    rows = Plain(axes)
    return rows.spread(b, maximum(b, rows, [x]))[0]


def each(
    b: Builder,
    body: Callable[[Scalar, Scalar], Scalar],
    pieces: Sequence[Tensor],
    numbers: Sequence[BroadcastOperand],
    dtype: np.dtype,
) -> list[Tensor]:
    """Of all that is in a piece with its rows' numbers."""
    both = zip(pieces, numbers, strict=True)
    return [combine(b, body, x.shape, dtype, x, number) for x, number in both]


def add(x: Scalar, y: Scalar) -> Scalar:
    return x + y


def softmax(b: Builder, node: Node) -> Tensor:
    x = node.input(0)
    return normalized(b, x, axes_of(node, x), node.output_dtypes[0])


def normalized(b: Builder, x: Tensor, axes: list[int], dtype: np.dtype) -> Tensor:
    """exp(x) / sum(exp(x)) over the axes, the sum's reciprocal taken once a row."""
    rows = rows_of(b, x, axes) or Plain(axes)
    pieces, wide = rows.split(b, x), computed_as(x.dtype)
    top = rows.spread(b, maximum(b, rows, pieces))
    grown = each(b, lambda s, top: (s - top).exp_nonpositive(), pieces, top, wide)
    total = rows.spread(b, rows.reduce(b, add, grown, 0))
    return rows.join(b, each(b, lambda s, n: s * (1 / n), grown, total, dtype))


def log_softmax(b: Builder, node: Node) -> Tensor:
    x = node.input(0)
    return log_probabilities(b, x, axes_of(node, x), node.output_dtypes[0])


def log_probabilities(
    b: Builder, x: Tensor, axes: list[int], dtype: np.dtype
) -> Tensor:
    """(x - maximum) - log(sum(exp(x - maximum))), the logarithm taken once a row."""
    rows = rows_of(b, x, axes) or Plain(axes)
    pieces, wide = rows.split(b, x), computed_as(x.dtype)
    top = rows.spread(b, maximum(b, rows, pieces))
    shifted = each(b, lambda s, top: s - top, pieces, top, wide)
    total = rows.reduce(b, add, shifted, 0, lambda s: s.exp_nonpositive())
    logarithm = rows.spread(b, b.elementwise(lambda s: s.math("log"), total))
    return rows.join(b, each(b, lambda s, log: s - log, shifted, logarithm, dtype))


def hardmax(b: Builder, node: Node) -> Tensor:
    """1 at the first maximum of each row, 0 elsewhere."""
    given = node.input(0)
    axes = axes_of(node, given)
    x = given
    if len(axes) != 1:  # the row of an old opset: its elements in row-major order
        outer = int(np.prod(given.shape[: given.rank - len(axes)], dtype=np.int64))
        x = b.reshape(given, (outer, given.size // outer if outer else 0))
        axes = [1]
    axis = axes[0]
    found = positions(b, x, axis, largest=True, last=False)

    def body(_: Scalar, first: Scalar) -> Scalar:
        inner = computed_as(x.dtype)
        here = position(axis).equal(first.cast(INT64))
        return select(here, constant(1, inner), constant(0, inner))

    marked = combine(
        b, body, x.shape, x.dtype, x, BroadcastOperand(found, kept(x, axes))
    )
    return b.reshape(marked, given.shape)


OPERATORS = {"Hardmax": hardmax, "LogSoftmax": log_softmax, "Softmax": softmax}
