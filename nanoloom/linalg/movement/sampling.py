"""Where Resize reads along one axis, and with which weights: tables made by numpy.

Resize is separable: every axis has a table of its own, and coordinates are those of
ONNX's definition, in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nanoloom.linalg.builder.tensor import Array

Filter = Callable[[Array], Array]


@dataclass(frozen=True)
class Axis:
    """One resized axis.  scale: as given or the quotient of the sizes; roi: its part
    (begin, end) of tf_crop_and_resize, in units of the input."""

    size: int
    resized: int
    scale: float
    roi: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Taps:
    """Indices and weights, [resized, taps] each; outside: where to extrapolate."""

    indices: Array
    weights: Array
    outside: Array


def coordinates(axis: Axis, mode: str) -> Array | None:
    """Where each output element lies in the input; None for an unknown mode.

    ONNX's length_resized is scale * size, no whole number: its tests have it so.
    """
    x = np.arange(axis.resized, dtype=np.float64)
    length = axis.scale * axis.size
    last = axis.size - 1
    match mode:
        case "asymmetric":
            return x / axis.scale
        case "half_pixel":
            return (x + 0.5) / axis.scale - 0.5
        case "tf_half_pixel_for_nn":  # opsets 11 and 12
            return (x + 0.5) / axis.scale
        case "pytorch_half_pixel":
            return (x + 0.5) / axis.scale - 0.5 if length > 1 else 0 * x
        case "half_pixel_symmetric":
            middle = axis.size / 2 * (1 - axis.resized / length)
            return middle + (x + 0.5) / axis.scale - 0.5
        case "align_corners":
            return 0 * x if length == 1 else x * last / (length - 1)
        case "tf_crop_and_resize":
            begin, end = axis.roi
            if length == 1:
                return 0 * x + (end - begin) * last / 2 + begin * last
            return x * (end - begin) * last / (length - 1) + begin * last
        case _:
            return None


OLDEST = "ceil where it shrinks"  # nearest up to opset 10, which has no nearest_mode
ROUNDINGS: dict[str, Callable[[Array, float], Array]] = {  # coordinates, scale
    "round_prefer_floor": lambda x, _: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x, _: np.floor(x + 0.5),
    "floor": lambda x, _: np.floor(x),
    "ceil": lambda x, _: np.ceil(x),
    OLDEST: lambda x, scale: oldest(x.astype(np.float32), scale),
}


def oldest(x: Array, scale: float) -> Array:
    """Of f32 coordinates: 7 / 0.7 is 10, whatever f32 has behind the 0.7."""
    return np.ceil(x) if scale < 1 else np.floor(x)


def linear(distance: Array) -> Array:
    return np.maximum(1 - abs(distance), 0)


def cubic(a: float) -> Filter:
    """Keys' cubic convolution kernel with the coefficient a."""

    def weight(distance: Array) -> Array:
        x = abs(distance)
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0))

    return weight


def taps(
    axis: Axis, x: Array, weight: Filter, reach: int, antialias: bool, exclude: bool
) -> Taps:
    """The neighbours of each coordinate within `reach`, and their weights.

    antialias: when shrinking, the filter is stretched by 1 / scale.
    exclude: neighbours outside the input count nothing; otherwise the edge repeats.
    """
    shrink = min(axis.scale, 1.0) if antialias else 1.0
    first = int(np.floor(-reach / shrink)) + 1
    steps = np.arange(first, 2 - first if antialias else reach + 1)
    left = np.ceil(x) - 1  # the left neighbour, at a distance in (0, 1]
    raw = (left[:, None] + steps).astype(np.int64)
    weights = weight((raw - x[:, None]) * shrink)
    if antialias:
        weights = weights / weights.sum(axis=1, keepdims=True)
    if exclude:
        weights = np.where((raw < 0) | (raw >= axis.size), 0, weights)
        total = weights.sum(axis=1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
    used = np.asarray(weights.any(axis=0))
    used[0] |= not used.any()
    inside = np.clip(raw, 0, axis.size - 1)
    return Taps(inside[:, used], weights[:, used], beyond(axis, x))


def beyond(axis: Axis, x: Array) -> Array:
    """Where a coordinate is outside the input."""
    return (x < 0) | (x > axis.size - 1)
