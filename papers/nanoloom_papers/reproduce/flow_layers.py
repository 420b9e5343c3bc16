"""The convolutions of the dataflow paper: one block of channels, many filters.

made[k, y, x] += image[s*y + r, s*x + q, c] * weights[k, r, q, c]

A block of channels is one vector variable: image and weights are NCHW[x]c and CKRS[x]c
of a single block, the lanes of a product are added up for each result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nanoloom.notation import Buffer, Computation, axes, cast, computation
from nanoloom_papers.reproduce.array_files import Array
from nanoloom_papers.reproduce.expected_results import DEVIATIONS, F32, Expected

F32_NUMBERS, INT8 = ELEMENTS = "f32", "int8"


@dataclass(frozen=True)
class FlowLayer:
    """Height and width of the filter and of the image, numbers of filters, the stride.

    registers: of a vector variable; channels: its lanes.  element: f32, or int8: an
    image of u8, weights of s8 and sums of s32.
    """

    filter: int
    size: int
    filters: int
    stride: int
    registers: int
    channels: int
    element: str = F32_NUMBERS

    @property
    def name(self) -> str:
        """(filter, image, filters), as the paper has it, stride and registers."""
        layer = f"({self.filter}, {self.size}, {self.filters})"
        words = f"stride {self.stride}, registers {self.registers}, {self.element}"
        return f"{layer}, {words}"

    @property
    def dtypes(self) -> tuple[str, str, str]:
        """Of image, weights and result."""
        if self.element == INT8:
            return "uint8", "int8", "int32"
        return "float32", "float32", "float32"

    @property
    def result(self) -> tuple[int, int, int]:
        side = (self.size - self.filter) // self.stride + 1
        return self.filters, side, side

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the inputs by name."""
        return {
            "image": (self.size, self.size, self.channels),
            "weights": (self.filters, self.filter, self.filter, self.channels),
        }


def written(layer: FlowLayer) -> Computation:
    """The layer in nanoloom's notation."""
    k, y, x, r, q, c = axes("k y x r q c")
    s, (of_image, of_weights, wide) = layer.stride, layer.dtypes
    image = Buffer("image", layer.shapes["image"], of_image)
    weights = Buffer("weights", layer.shapes["weights"], of_weights)
    made = Buffer("made", layer.result, wide)
    one, other = image[s * y + r, s * x + q, c], weights[k, r, q, c]
    if layer.element == INT8:
        one, other = cast(one, wide), cast(other, wide)
    made[k, y, x] += one * other
    return computation(made)


def draw(layer: FlowLayer, seed: int = 0) -> dict[str, Array]:
    """Random inputs by name."""
    random = np.random.default_rng(seed)
    if layer.element == INT8:
        limits = {"image": (0, 256, np.uint8), "weights": (-128, 128, np.int8)}
        return {
            name: random.integers(low, high, layer.shapes[name], kind)
            for name, (low, high, kind) in limits.items()
        }
    return {n: random.standard_normal(s, np.float32) for n, s in layer.shapes.items()}


def right(layer: FlowLayer, numbers: dict[str, Array]) -> Expected:
    """The result for these numbers, as `expected` allows for roundings; of bytes
    exact, which float64 has room for."""
    image, weights = (numbers[name].astype(np.float64) for name in layer.shapes)
    _, side, _ = layer.result
    total, squares = np.zeros(layer.result), np.zeros(layer.result)
    for r, q in np.ndindex(layer.filter, layer.filter):
        ends = (at + layer.stride * (side - 1) + 1 for at in (r, q))
        rows, columns = (
            slice(at, end, layer.stride) for at, end in zip((r, q), ends, strict=True)
        )
        part, here = image[rows, columns], weights[:, r, q].T
        total += np.moveaxis(part @ here, -1, 0)
        if layer.element != INT8:  # whose sums are exact
            squares += np.moveaxis(part**2 @ here**2, -1, 0)
    if layer.element == INT8:
        return Expected(total, None)
    steps = layer.filter**2 * layer.channels
    return Expected(total, DEVIATIONS * F32 * np.sqrt(steps * squares + total**2))
