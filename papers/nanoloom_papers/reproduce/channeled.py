"""The channeled convolution of MLIR's chapter H, its numbers and what is right.

conv[n, y, x, c] = bias[c]
conv[n, y, x, c] += weights[rx, rz, ry, c] * image[n, y + rz, x + ry, rx]
relu[n, y, x, c] = max(0, conv[n, y, x, c])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nanoloom.notation import Buffer, Computation, axes, computation, maximum
from nanoloom_papers.reproduce.array_files import Array
from nanoloom_papers.reproduce.chains import Arithmetic
from nanoloom_papers.reproduce.expected_results import DEVIATIONS, F32, Expected

WINDOW = 3


@dataclass(frozen=True)
class Convolution:
    """Sizes of the result, and `channels` of the image; chapter H's by default."""

    images: int = 5
    rows: int = 80
    columns: int = 100
    filters: int = 128
    channels: int = 128

    @property
    def kind(self) -> str:
        return "convolution"

    @property
    def arithmetic(self) -> Arithmetic:
        return "f32"

    @property
    def result(self) -> tuple[int, int, int, int]:
        """The shape of the result, [n, y, x, c]."""
        return self.images, self.rows, self.columns, self.filters

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the inputs by name."""
        wide, high = self.columns + WINDOW - 1, self.rows + WINDOW - 1
        return {
            "image": (self.images, high, wide, self.channels),
            "weights": (self.channels, WINDOW, WINDOW, self.filters),
            "bias": (self.filters,),
        }

    @property
    def size(self) -> str:
        """n x y x x x c of the result, and the filter's window and channels."""
        result = "x".join(map(str, self.result))
        return f"{result}, {WINDOW}x{WINDOW}x{self.channels}"

    @property
    def steps(self) -> int:
        """Products in every sum."""
        return WINDOW * WINDOW * self.channels

    @property
    def flops(self) -> int:
        """Multiplications and additions of the sums; the document counts half of them.

        It multiplies 2 * 3 * 3 where 2 * 3 * 3 * 128 operations are.
        """
        return 2 * self.steps * int(np.prod(self.result))

    @property
    def bytes(self) -> int:
        """What must at least be read and written."""
        shapes = (*self.shapes.values(), self.result)
        return 4 * sum(int(np.prod(shape)) for shape in shapes)


def written(sizes: Convolution) -> Computation:
    """The computation in nanoloom's notation."""
    n, y, x, c, rz, ry, rx = axes("n y x c rz ry rx")
    image, weights, bias = (Buffer(*found) for found in sizes.shapes.items())
    conv, relu = Buffer("conv", sizes.result), Buffer("relu")
    conv[n, y, x, c] = bias[c]
    conv[n, y, x, c] += weights[rx, rz, ry, c] * image[n, y + rz, x + ry, rx]
    relu[n, y, x, c] = maximum(conv[n, y, x, c], 0)
    return computation(relu)


def draw(sizes: Convolution, seed: int = 0) -> dict[str, Array]:
    """Random inputs by name: normal numbers, of the filter so that sums stay small."""
    random = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for name, shape in sizes.shapes.items():
        found[name] = random.standard_normal(shape, np.float32)
    found["weights"] /= np.float32(np.sqrt(sizes.steps))
    return found


def right(sizes: Convolution, numbers: dict[str, Array]) -> Expected:
    """The result for these numbers, as `expected` allows for roundings."""
    image, weights, bias = (numbers[name].astype(np.float64) for name in sizes.shapes)
    total, squares = np.zeros(sizes.result), np.zeros(sizes.result)
    for rz in range(WINDOW):
        for ry in range(WINDOW):
            part = image[:, rz : rz + sizes.rows, ry : ry + sizes.columns]
            total += part @ weights[:, rz, ry]
            squares += part**2 @ weights[:, rz, ry] ** 2
    value = total + bias
    variance = F32**2 * (sizes.steps * squares + total**2 + value**2)
    return Expected(np.maximum(value, 0), DEVIATIONS * np.sqrt(variance))
