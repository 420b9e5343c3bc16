"""GridSample and AffineGrid: images read at run-time coordinates, in any dimensions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import Builder, Map, computed_as
from nanoloom.linalg.builder.indexing import INT64, dims, map_generic, position
from nanoloom.linalg.builder.lanes import lanes_of
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, constant, is_float, select
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.movement.sampled_rows import Along, Tap, gathered, sampled_rows

FLOAT64 = np.dtype(np.float64)
CUBIC = -0.75  # Keys' coefficient, as ONNX fixes it
REACH = 4  # how far outside a coordinate is told apart: beyond, nothing is read


@dataclass(frozen=True)
class Side:
    """One axis of the image, its borders as padding sees them."""

    extent: int
    align: bool
    padding: str

    @property
    def borders(self) -> tuple[float, float]:
        return (0.0, self.extent - 1.0) if self.align else (-0.5, self.extent - 0.5)

    def coordinate(self, normalized: Scalar) -> Scalar:
        """From [-1, 1] to the axis."""
        if self.align:
            return (normalized + 1.0) / 2.0 * float(self.extent - 1)
        return ((normalized + 1.0) * float(self.extent) - 1.0) / 2.0

    def padded(self, x: Scalar, to_border: bool) -> Scalar:
        """A coordinate outside the borders moved as the padding says.

        to_border: not where only the pixels around it are moved (docs/numbers.md).
        """
        low, high = self.borders
        outside = (x < low) | (x > high)
        if self.padding == "border" and to_border:
            clamped = bounded(x, 0.0, self.extent - 1.0)
            x = select(outside, clamped, x)
        elif self.padding == "reflection":
            x = select(outside, self.reflected(x), x)
        return bounded(x, -float(REACH), float(self.extent - 1 + REACH))

    def reflected(self, x: Scalar) -> Scalar:
        """Mirrored at the borders until it is between them."""
        low, high = self.borders
        width = high - low
        if width == 0:
            return constant(low, x.dtype)
        below = x < low
        distance = select(below, low - x, x - high)
        times = (distance / width).math("floor")
        rest = distance - times * width
        odd = (times * 0.5).math("floor") * 2.0
        even = times.equal(odd)
        from_low = even ^ ~below  # even and below, or odd and above
        return select(from_low, low + rest, high - rest)

    def tap(self, place: Scalar, weight: Scalar | None) -> Tap:
        """The pixel at a whole coordinate, which may be outside."""
        if self.padding == "reflection":
            low, high = self.borders
            outside = (place < low) | (place > high)
            place = select(outside, self.reflected(place), place)
        inside = None
        if self.padding == "zeros":
            inside = (place >= 0.0) & (place <= self.extent - 1.0)
        safe = bounded(place, 0.0, self.extent - 1.0)
        return Tap(safe.cast(INT64), weight, inside)


def bounded(x: Scalar, low: float, high: float) -> Scalar:
    """x between two numbers; `low` for NaN."""
    above = select(x > low, x, constant(low, x.dtype))
    return select(above < high, above, constant(high, x.dtype))


def nearest(side: Side, x: Scalar) -> list[Tap]:
    return [side.tap(x, None)]


def linear(side: Side, x: Scalar) -> list[Tap]:
    first = x.math("floor")
    part = x - first
    return [side.tap(first, 1.0 - part), side.tap(first + 1.0, part)]


def cubic(side: Side, x: Scalar) -> list[Tap]:
    a = CUBIC
    first = x.math("floor")
    t = x - first

    def near(s: Scalar) -> Scalar:
        return ((a + 2) * s - (a + 3)) * s * s + 1.0

    def far(s: Scalar) -> Scalar:
        return ((a * s - 5 * a) * s + 8 * a) * s - 4 * a

    weights = [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]
    return [side.tap(first + float(i - 1), weight) for i, weight in enumerate(weights)]


MODES: dict[str, Callable[[Side, Scalar], list[Tap]]] = {
    "nearest": nearest,
    "linear": linear,
    "bilinear": linear,  # the names up to opset 19
    "cubic": cubic,
    "bicubic": cubic,
}


def grid_sample(b: Builder, node: Node) -> Tensor:
    """[n, c, *image] at grid [n, *out, d], whose coordinates come innermost first."""
    x, grid = node.input(0), node.input(1)
    mode = node.string("mode", "linear" if node.version > 19 else "bilinear")
    padding = node.string("padding_mode", "zeros")
    if mode not in MODES or padding not in ("zeros", "border", "reflection"):
        raise node.unsupported(f"mode {mode} with padding {padding}")
    if MODES[mode] is not nearest and not is_float(x.dtype):
        raise node.unsupported(f"mode {mode} of {x.dtype} values")
    align = bool(node.int("align_corners"))
    sides = [Side(extent, align, padding) for extent in x.shape[2:]]
    shape = node.output_shapes[0]
    rank, depth = len(shape), len(sides)

    def along(side: Side, normalized: Scalar) -> list[Tap]:
        at = side.coordinate(normalized)
        at = at.math("roundeven") if MODES[mode] is nearest else at
        return MODES[mode](side, side.padded(at, MODES[mode] is not cubic))

    if MODES[mode] is not nearest and x.shape[1] >= lanes_of(x.dtype):
        count, zeros = (4 if MODES[mode] is cubic else 2), padding == "zeros"
        rows = [Along(partial(along, side), count, zeros) for side in sides]
        return sampled_rows(b, x, grid, rows, shape[2:])
    origin = b.value(x)

    def body(*given: Scalar) -> Scalar:
        placed = zip(sides, reversed(given), strict=True)
        taps = [along(side, normalized) for side, normalized in placed]
        return gathered(b, x, origin, taps, [position(0), position(1)], [])

    places = [ir.AffineDimExpr.get(d) for d in (0, *range(2, rank))]
    inputs = [
        (grid, Map.get(rank, 0, [*places, ir.AffineConstantExpr.get(d)]))
        for d in range(depth)
    ]
    return map_generic(b, shape, x.dtype, inputs, body)


def affine_grid(b: Builder, node: Node) -> Tensor:
    """grid[n, ..., i] = sum over j of theta[n, i, j] * (coordinates, 1)[..., j].

    Coordinates come innermost first.  They are those of an axis each, computed.
    """
    theta, shape = node.input(0), node.output_shapes[0]
    rank, depth = len(shape), len(shape) - 2
    align, wide = bool(node.int("align_corners")), computed_as(theta.dtype)
    lines = [line(b, size, align, wide) for size in shape[-2:0:-1]]
    row = [ir.AffineDimExpr.get(0), ir.AffineDimExpr.get(rank - 1)]
    inputs = [
        (theta, Map.get(rank, 0, [*row, ir.AffineConstantExpr.get(j)]))
        for j in range(depth + 1)
    ]
    inputs += [(x, dims(rank, [depth - j])) for j, x in enumerate(lines)]

    def body(*given: Scalar) -> Scalar:
        *factors, total = given[: depth + 1]
        for factor, coordinate in zip(factors, given[depth + 1 :], strict=True):
            total = total + factor * coordinate
        return total

    return map_generic(b, shape, theta.dtype, inputs, body)


def line(b: Builder, size: int, align: bool, dtype: np.dtype) -> Tensor:
    """The normalized coordinates of the centres (or corners) along an axis."""

    def body(place: Scalar) -> Scalar:
        twice = place.cast(FLOAT64) * 2.0
        steps, over = (twice, max(size - 1, 1)) if align else (twice + 1.0, size)
        return (steps / float(over) - 1.0).cast(dtype)

    return b.generate((size,), dtype, body)


OPERATORS = {"AffineGrid": affine_grid, "GridSample": grid_sample}
