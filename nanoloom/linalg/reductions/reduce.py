"""Reduce*: one fold over the axes, and what is done to the result of the fold.

Over no elements it is what the fold begins with: 0 for sums, 1 for products, the type's
ends for the extremes; the mean is NaN, of integers 0.  Roots and logarithms of integers
are taken in f64 and stay within the type: log(0) is its lowest number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from nanoloom.linalg.builder.builder import Builder, computed_as
from nanoloom.linalg.builder.input_checks import require_axes
from nanoloom.linalg.builder.narrow_rows import reduced
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.placed_operands import BroadcastOperand, combine
from nanoloom.linalg.builder.scalar import (
    BOOL,
    Number,
    Scalar,
    constant,
    is_float,
    select,
)
from nanoloom.linalg.builder.tensor import Tensor

FLOAT64 = np.dtype(np.float64)


def lowest(dtype: np.dtype) -> Number:
    """What max begins with."""
    if is_float(dtype):
        return -np.inf
    return False if dtype == BOOL else int(ml_dtypes.iinfo(dtype).min)


def highest(dtype: np.dtype) -> Number:
    """What min begins with."""
    if is_float(dtype):
        return np.inf
    return True if dtype == BOOL else int(ml_dtypes.iinfo(dtype).max)


def same(s: Scalar) -> Scalar:
    return s


@dataclass(frozen=True)
class Fold:
    """finish(body(... body(start, prepare(x0)), prepare(x1) ...), count of elements).

    floating: the fold runs in f64 where the elements are integers.
    """

    body: Callable[[Scalar, Scalar], Scalar]
    start: Callable[[np.dtype], Number]
    prepare: Callable[[Scalar], Scalar] = same
    finish: Callable[[Scalar, int], Scalar] | None = None
    floating: bool = False


def add(x: Scalar, y: Scalar) -> Scalar:
    return x + y


def mean_of(total: Scalar, count: int) -> Scalar:
    """Integers: towards zero, and an empty mean is 0 (a float one is NaN)."""
    return total / (count if is_float(total.dtype) else max(count, 1))


def saturated(x: Scalar, dtype: np.dtype) -> Scalar:
    """A float as an integer, towards zero; the type's ends where it has no such number.

    The lowest for NaN.  A conversion alone leaves open what it gives there.
    """
    if is_float(dtype) or not is_float(x.dtype):
        return x.cast(dtype)
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    above = x >= float(high)  # of 64 bits: rounded up, so what is below it fits
    small = select(x >= low, x, low)
    inside = select(above, constant(0, x.dtype), small)
    return select(above, constant(high, dtype), inside.cast(dtype))


FOLDS = {
    "ReduceL1": Fold(add, lambda _: 0, lambda s: s.absolute()),
    "ReduceL2": Fold(
        add, lambda _: 0, lambda s: s * s, lambda s, _: s.math("sqrt"), floating=True
    ),
    "ReduceLogSum": Fold(
        add, lambda _: 0, same, lambda s, _: s.math("log"), floating=True
    ),
    "ReduceMax": Fold(lambda x, y: x.maximum(y), lowest),
    "ReduceMean": Fold(add, lambda _: 0, same, mean_of),
    "ReduceMin": Fold(lambda x, y: x.minimum(y), highest),
    "ReduceProd": Fold(lambda x, y: x * y, lambda _: 1),
    "ReduceSum": Fold(add, lambda _: 0),
    "ReduceSumSquare": Fold(add, lambda _: 0, lambda s: s * s),
}


def axes_of(node: Node, x: Tensor) -> list[int]:
    """From the attribute or the second input; none means all, or none if asked so."""
    given: Sequence[int] = node.ints("axes")
    if node.optional(1) is not None:
        known = node.known(1)
        assert known is not None
        given = [int(a) for a in known.reshape(-1)]
    if not given and not node.int("noop_with_empty_axes"):
        return list(range(x.rank))
    if x.rank:
        require_axes(node, given)
    return sorted({a % x.rank for a in given}) if x.rank else []


def count_of(x: Tensor, axes: Sequence[int]) -> int:
    return int(np.prod([x.shape[a] for a in axes], dtype=np.int64))


def reducing(fold: Fold) -> Callable[[Builder, Node], Tensor]:
    def lower(b: Builder, node: Node) -> Tensor:
        x, dtype = node.input(0), node.output_dtypes[0]
        axes = axes_of(node, x)
        wide = computed_as(dtype)
        if fold.floating and not is_float(dtype):
            wide = FLOAT64
        total = reduced(
            b,
            fold.body,
            x,
            axes,
            fold.start(wide),
            dtype=wide,
            prepare=lambda s: fold.prepare(s.cast(wide)),
        )
        finish = fold.finish
        if finish is not None:
            count = count_of(x, axes)
            total = b.elementwise(
                lambda s: saturated(finish(s, count), computed_as(dtype)),
                total,
                dtype=dtype,
            )
        return b.reshape(b.cast(total, dtype), node.output_shapes[0])

    return lower


def log_sum_exp(b: Builder, node: Node) -> Tensor:
    """maximum + log(sum(exp(x - maximum))); an infinite maximum is not subtracted."""
    x, dtype = node.input(0), node.output_dtypes[0]
    axes = axes_of(node, x)
    wide = computed_as(dtype) if is_float(dtype) else FLOAT64
    keep = tuple(d for d in range(x.rank) if d not in axes)
    top = reduced(
        b,
        lambda sofar, s: sofar.maximum(s),
        x,
        axes,
        -np.inf,
        dtype=wide,
        prepare=lambda s: s.cast(wide),
    )
    finite = b.elementwise(lambda s: select((s - s).equal(0), s, 0), top)
    grown = combine(
        b,
        lambda s, t: (s.cast(wide) - t).math("exp"),
        x.shape,
        wide,
        x,
        BroadcastOperand(finite, keep),
    )
    total = reduced(b, add, grown, axes, 0)
    result = b.elementwise(
        lambda s, t: saturated(s.math("log") + t, computed_as(dtype)),
        total,
        finite,
        dtype=dtype,
    )
    return b.reshape(result, node.output_shapes[0])


OPERATORS = {
    **{name: reducing(fold) for name, fold in FOLDS.items()},
    "ReduceLogSumExp": log_sum_exp,
}
