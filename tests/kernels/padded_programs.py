"""Programs that read a padded image in windows, and what they compute."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.kernels.program import Program

Array = np.ndarray
LEAST = -np.inf


@dataclass(frozen=True)
class Windows:
    """Windows of rows and pixels over a padded image [y, x, c]."""

    window: tuple[int, int]
    low: tuple[int, int]
    high: tuple[int, int]
    number: float = 0
    steps: tuple[int, int] = (1, 1)
    apart: tuple[int, int] = (1, 1)

    def extents(self, image: tuple[int, ...]) -> tuple[int, int]:
        """Of the result."""
        y, x = (
            (a + n + b - (k - 1) * d - 1) // s + 1
            for n, k, a, b, s, d in zip(
                image, self.window, self.low, self.high, self.steps, self.apart,
                strict=False,
            )
        )  # fmt: skip
        return y, x

    def padded(self, image: Array) -> Array:
        sides = (*zip(self.low, self.high, strict=True), (0, 0))
        return np.pad(image, sides, constant_values=self.number)

    def taps(self, image: Array) -> dict[tuple[int, int], Array]:
        """What each place of the window reads, for all windows."""
        padded, (high, wide) = self.padded(image), self.extents(image.shape)
        found: dict[tuple[int, int], Array] = {}
        for y, x in product(*map(range, self.window)):
            (a, b), (s, t) = (y * self.apart[0], x * self.apart[1]), self.steps
            found[y, x] = padded[a : a + high * s : s, b : b + wide * t : t][
                :high, :wide
            ]
        return found

    def pad(self, b: Any, x: Any) -> Any:
        low, high = (*self.low, 0), (*self.high, 0)
        return b.pad(x, low, high, self.number)

    def indexing(self, axes: int, tap: int, *last: int) -> ir.AffineMap:
        """Where the tap loops from `tap` on read the padded image."""
        d = ir.AffineDimExpr.get
        at = [
            d(i) * s + d(tap + i) * k
            for i, (s, k) in enumerate(zip(self.steps, self.apart, strict=True))
        ]
        return ir.AffineMap.get(axes, 0, [*at, *map(d, last)])


def plain(axes: int, *places: int) -> ir.AffineMap:
    return ir.AffineMap.get(axes, 0, [ir.AffineDimExpr.get(p) for p in places])


def sums_of(windows: Windows, b: Any, x: Any, weights: Any) -> Any:
    """The sums of weights[y, x, c, f] * image[..., c]."""
    kinds = ["parallel"] * 3 + ["reduction"] * 3
    start = b.full((*windows.extents(x.shape), weights.shape[-1]), 0, x.dtype)
    inputs = [
        (windows.pad(b, x), windows.indexing(6, 3, 5)),
        (weights, plain(6, 3, 4, 5, 2)),
    ]
    outputs = [(start, plain(6, 0, 1, 2))]
    (sums,) = b.generic(inputs, outputs, kinds, lambda a, w, total: total + a * w)
    return sums


def convolution(windows: Windows, weights: Array) -> Any:
    """The same with weights that are known while compiling."""
    return lambda b, x: sums_of(windows, b, x, b.constant(weights))


def pool(windows: Windows) -> Any:
    """The largest of each window, from a padded image that others read as it is."""

    def make(b: Any, x: Any) -> Any:
        padded = windows.pad(b, x)
        start = b.full((*windows.extents(x.shape), x.shape[2]), LEAST, x.dtype)
        window = b.tensor(b.empty(windows.window, x.dtype), x.dtype)
        (most,) = b.generic(
            [(padded, windows.indexing(5, 3, 2)), (window, plain(5, 3, 4))],
            [(start, plain(5, 0, 1, 2))], ["parallel"] * 3 + ["reduction"] * 2,
            lambda a, _, most: most.maximum(a),
        )  # fmt: skip
        return most

    return make


def relu(b: Any, x: Any) -> Any:
    return b.elementwise(lambda s: s.maximum(0), x)


def kernels(program: Program) -> list[str]:
    return [call.kernel.split("_")[0] for call in program.calls]


def stages(program: Program) -> list[list[str]]:
    """Of each kernel."""
    return [[s.name for s in k.nest.stages] for k in program.kernels.values()]


def first_layer(windows: Windows, weights: Array, *, known: bool = True) -> Any:
    """y[y, x, f] = max(0, sum of pad(image)[c, y + i, x + j] * weights[i, j, c, f])."""

    def make(b: Any, x: Any, *given: Any) -> Any:
        low, high = (0, *windows.low), (0, *windows.high)
        padded = b.pad(x, low, high, windows.number)
        extents = windows.extents((*x.shape[1:], x.shape[0]))
        start = b.full((*extents, weights.shape[-1]), 0, x.dtype)
        right = b.constant(weights) if known else given[0]
        (sums,) = b.generic(
            [(padded, indexing(windows)), (right, plain(6, 3, 4, 5, 2))],
            [(start, plain(6, 0, 1, 2))], ["parallel"] * 3 + ["reduction"] * 3,
            lambda a, w, total: total + a * w,
        )  # fmt: skip
        return relu(b, sums)

    return make


def indexing(windows: Windows) -> ir.AffineMap:
    """Where the loops read the padded image."""
    pixels = windows.indexing(6, 3)
    channel = plain(6, 5)
    return ir.AffineMap.get(6, 0, [*channel.results, *pixels.results])
