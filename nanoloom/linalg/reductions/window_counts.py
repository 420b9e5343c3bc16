"""How many elements the windows of a pool average: constants, or computed in place.

Along an axis, taps k of the window at o are at o * stride + k * dilation - low; those
from `first` to `end` count:

    min(K, ceil((end - at) / dilation)) - min(K, ceil((first - at) / dilation))
"""

from __future__ import annotations

import numpy as np

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.builder.window import Window
from nanoloom.nest.guard import Guard


def with_padding(node: Node) -> bool:
    return bool(node.int("count_include_pad"))


def is_counted(node: Node, window: Window) -> bool:
    """Whether sizes decide how many elements a window has."""
    padded = any((*window.low, *window.high)) and not with_padding(node)
    further = window.up and max(window.strides) > 1
    return window.counted and (padded or further)


def element_counts(window: Window, with_padding: bool) -> np.ndarray:
    """How many elements each window averages: [result...].

    What a window of ceil_mode reads behind the padding never counts.
    """
    counts = np.ones((), np.int64)
    for i, result in enumerate(window.result):
        before = window.low[i] if with_padding else 0
        behind = window.high[i] if with_padding else 0
        size, taps = before + window.size[i] + behind, window.kernel[i]
        starts = (o * window.strides[i] - window.low[i] + before for o in range(result))
        guards = [Guard(at, window.dilations[i], size) for at in starts]
        inside = [len(guard.steps(taps)) for guard in guards]
        counts = np.multiply.outer(counts, np.array(inside, np.int64))
    return counts


def computed_counts(
    b: Builder, window: Window, dtype: np.dtype, with_padding: bool
) -> Tensor:
    """The same as a tensor that the program computes, [result...]."""

    def count(*places: Scalar) -> Scalar:
        found = along(window, 0, places[0], with_padding)
        for i in range(1, window.rank):
            found = found * along(window, i, places[i], with_padding)
        return found.cast(dtype)

    return b.generate(window.result, dtype, count)


def along(window: Window, i: int, place: Scalar, with_padding: bool) -> Scalar:
    """How many taps count along one axis."""
    at = place * window.strides[i] - window.low[i]
    end = window.size[i] + (window.high[i] if with_padding else 0)
    found = reached(window, i, at, end)
    first = -window.low[i] if with_padding else 0
    return found - reached(window, i, at, first) if first > -window.low[i] else found


def reached(window: Window, i: int, at: Scalar, end: int) -> Scalar:
    """How many taps of a window lie in front of a place."""
    step = window.dilations[i]
    far = (end - at).maximum(0)
    return (far if step == 1 else (far + (step - 1)) / step).minimum(window.kernel[i])
