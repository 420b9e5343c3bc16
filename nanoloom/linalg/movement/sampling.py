"""Where Resize reads along one axis, and with which weights.

Resize is separable: every axis has a table of its own, and coordinates are those of
ONNX's definition, in float64.  Tables are made by numpy where sizes are known, and by
the program where they are not (computed_taps.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nanoloom.linalg.builder.tensor import Array
from nanoloom.linalg.movement.coordinate_arithmetic import (
    Coordinate,
    absolute,
    ceil,
    equal,
    floor,
    in_f32,
    outside,
    where,
)

Filter = Callable[[Coordinate], Coordinate]


@dataclass(frozen=True)
class Axis:
    """One resized axis.  scale: as given or the quotient of the sizes; roi: its part
    (begin, end) of tf_crop_and_resize, in units of the input.  is_quotient: the scale
    is that of the sizes."""

    size: int
    resized: int
    scale: float
    roi: tuple[float, float] = (0.0, 1.0)
    is_quotient: bool = False


@dataclass(frozen=True)
class Extents:
    """What coordinates of an axis are computed from: numbers, or scalars of a body."""

    size: Coordinate
    resized: Coordinate
    scale: Coordinate
    roi: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Taps:
    """Indices and weights, [resized, taps] each; outside: where to extrapolate."""

    indices: Array
    weights: Array
    outside: Array


def extents_of(axis: Axis) -> Extents:
    return Extents(float(axis.size), float(axis.resized), axis.scale, axis.roi)


def coordinates(axis: Axis, mode: str) -> Array | None:
    """Where each output element lies in the input; None for an unknown mode."""
    x = np.arange(axis.resized, dtype=np.float64)
    return placed(x, extents_of(axis), mode)


def placed(x: Coordinate, axis: Extents, mode: str) -> Coordinate | None:
    """Where elements x of the result lie in the input; None for an unknown mode.

    ONNX's length_resized is scale * size, no whole number: its tests have it so.
    """
    length = axis.scale * axis.size
    last = axis.size - 1.0
    match mode:
        case "asymmetric":
            return x / axis.scale
        case "half_pixel":
            return (x + 0.5) / axis.scale - 0.5
        case "tf_half_pixel_for_nn":  # opsets 11 and 12
            return (x + 0.5) / axis.scale
        case "pytorch_half_pixel":
            return where(length > 1.0, (x + 0.5) / axis.scale - 0.5, 0.0 * x)
        case "half_pixel_symmetric":
            middle = axis.size / 2.0 * (1.0 - axis.resized / length)
            return middle + (x + 0.5) / axis.scale - 0.5
        case "align_corners":
            one = equal(length, 1.0)
            return where(one, 0.0 * x, x * last / where(one, 1.0, length - 1.0))
        case "tf_crop_and_resize":
            begin, end = axis.roi
            one = equal(length, 1.0)
            middle = 0.0 * x + (end - begin) * last / 2.0 + begin * last
            step = x * (end - begin) * last / where(one, 1.0, length - 1.0)
            return where(one, middle, step + begin * last)
        case _:
            return None


OLDEST = "ceil where it shrinks"  # nearest up to opset 10, which has no nearest_mode
Rounding = Callable[[Coordinate, float], Coordinate]
ROUNDINGS: dict[str, Rounding] = {  # coordinates, scale
    "round_prefer_floor": lambda x, _: ceil(x - 0.5),
    "round_prefer_ceil": lambda x, _: floor(x + 0.5),
    "floor": lambda x, _: floor(x),
    "ceil": lambda x, _: ceil(x),
    OLDEST: lambda x, scale: oldest(in_f32(x), scale),
}


def oldest(x: Coordinate, scale: float) -> Coordinate:
    """Of f32 coordinates: 7 / 0.7 is 10, whatever f32 has behind the 0.7."""
    return ceil(x) if scale < 1 else floor(x)


def linear(distance: Coordinate) -> Coordinate:
    part = 1.0 - absolute(distance)
    return where(part > 0.0, part, 0.0)


def cubic(a: float) -> Filter:
    """Keys' cubic convolution kernel with the coefficient a."""

    def weight(distance: Coordinate) -> Coordinate:
        x = absolute(distance)
        near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
        far = ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
        return where(x <= 1.0, near, where(x < 2.0, far, 0.0))

    return weight


def taps(
    axis: Axis, x: Array, weight: Filter, reach: int, antialias: bool, exclude: bool
) -> Taps:
    """The neighbours of each coordinate within `reach`, and their weights.

    antialias: when shrinking, the filter is stretched by 1 / scale.
    exclude: neighbours outside the input count nothing; otherwise the edge repeats.
    """
    shrink = min(axis.scale, 1.0) if antialias else 1.0
    steps = steps_of(shrink, reach, antialias)
    left = np.ceil(x) - 1  # the left neighbour, at a distance in (0, 1]
    raw = (left[:, None] + steps).astype(np.int64)
    weights = np.asarray(weight((raw - x[:, None]) * shrink))
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


def steps_of(shrink: float, reach: int, antialias: bool) -> np.ndarray:
    """The neighbours of a coordinate, counted from the left one."""
    first = int(np.floor(-reach / shrink)) + 1
    return np.arange(first, 2 - first if antialias else reach + 1)


def beyond(axis: Axis, x: Array) -> Array:
    """Where a coordinate is outside the input."""
    return outside(x, axis.size - 1.0)
