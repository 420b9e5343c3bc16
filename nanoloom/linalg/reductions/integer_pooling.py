"""nanoloom.integer: averages of 8-bit integers, as the graph stage makes them.

AveragePool and GlobalAveragePool take x [n, c, ...] (or channels last), a_zero [] (or
omitted: 0), factor f64 [], y_zero [] (omitted: 0), and ONNX's attributes:

    saturate(round(sum (x - a_zero) * factor / count) + y_zero)

The sums are exact.  Pads stand for the number zero, which x's zero point stores.
"""

from __future__ import annotations

from math import prod

import numpy as np

from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.placed_operands import BroadcastOperand, combine
from nanoloom.linalg.builder.requantization import Requantization
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.builder.window import from_channels_last, to_channels_last
from nanoloom.linalg.reductions.pooling import (
    pool_window,
    shape_only,
    spatial_axes,
    window_loops,
)
from nanoloom.linalg.reductions.window_counts import (
    computed_counts,
    element_counts,
    is_counted,
    with_padding,
)

FLOAT64, INT32 = np.dtype(np.float64), np.dtype(np.int32)
WIDEST = 255


def global_average_pool(b: Builder, node: Node) -> Tensor:
    """One average of each channel."""
    x = node.input(0)
    axes = spatial_axes(node, x)
    total = b.reduce(
        lambda s, e: s + e, x, axes, 0, dtype=INT32, prepare=lambda e: e.cast(INT32)
    )
    count = prod(x.shape[d] for d in axes)
    return averaged(b, node, total, count, np.array([count]), ())


def average_pool(b: Builder, node: Node) -> Tensor:
    """One average of each window."""
    x, window = node.input(0), pool_window(node)
    met = window.within()
    padded = met.pad(b, to_channels_last(b, node, x), zero_of(node, 1))
    outputs, maps = window_loops(met)
    start = b.full((x.shape[0], *window.result, padded.shape[-1]), 0, INT32)
    (total,) = b.generic(
        [(padded, maps[0]), (shape_only(b, met, x.dtype), maps[1])],
        [(start, maps[2])],
        [PARALLEL] * outputs + [REDUCTION] * window.rank,
        lambda element, _, sofar: sofar + element.cast(INT32),
    )
    places, taken = tuple(range(1, 1 + window.rank)), prod(met.kernel)
    if is_counted(node, window):
        counts = computed_counts(b, window, FLOAT64, with_padding(node))
        scale = float(node.input(2).array().reshape(()))
        factors = b.elementwise(lambda n: scale / n.maximum(1), counts)
        made = scaled(
            b, node, total, taken, BroadcastOperand(factors, places), abs(scale)
        )
    else:
        known = element_counts(window, with_padding(node))
        made = averaged(b, node, total, taken, known, places)
    return from_channels_last(b, node, made)


def averaged(
    b: Builder,
    node: Node,
    total: Tensor,
    taken: int,
    counts: np.ndarray,
    places: tuple[int, ...],
) -> Tensor:
    """What follows sums of so many stored numbers; counts: what they are divided by.

    places: the dimensions that the counts follow.
    """
    factor = node.input(2).array().reshape(()) / np.maximum(counts, 1)
    if factor.size and (factor == factor.flat[0]).all():
        factor, places = factor.reshape(-1)[0], ()
    most = float(abs(factor).max(initial=0))
    return scaled(
        b, node, total, taken, BroadcastOperand(b.constant(factor), places), most
    )


def scaled(
    b: Builder,
    node: Node,
    total: Tensor,
    taken: int,
    factors: BroadcastOperand,
    largest: float,
) -> Tensor:
    """Sums of so many stored numbers by factors, the largest of which is known."""
    offset = np.array(-taken * zero_of(node, 1), FLOAT64)
    most = 2 * taken * WIDEST * largest
    dtype = node.output_dtypes[0]
    made = Requantization(dtype, zero_of(node, 3), False, most)
    given = [factors, BroadcastOperand(b.constant(offset), ())]
    return combine(b, made.of, total.shape, dtype, total, *given)


def zero_of(node: Node, place: int) -> int:
    """A zero point, known while compiling."""
    zero = node.optional(place)
    return 0 if zero is None else int(zero.array().reshape(()))


OPERATORS = {
    "nanoloom.integer.AveragePool": average_pool,
    "nanoloom.integer.GlobalAveragePool": global_average_pool,
}
