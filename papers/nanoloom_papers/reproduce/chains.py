"""Chains of matrix products: what the paper on nanokernels measures, and plain GEMMs.

    x[rows, widths[0]] @ w0 (+ b0, ReLU) @ w1 (+ b1, ReLU) ... -> y[rows, widths[-1]]

The numbers of a chain are drawn here, from a seed, for nanoloom and every peer alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from nanoloom_papers.reproduce.array_files import BFLOAT16, Array

# f32; bf16: inputs, weights and outputs, sums in f32; bf16-flat: the weights are inputs
# and cannot be packed before; mixed: an f32 model computed in bf16; int8: u8 x s8.
Arithmetic = Literal["f32", "bf16", "bf16-flat", "int8", "mixed"]
ARITHMETICS: tuple[Arithmetic, ...] = get_args(Arithmetic)
LAYERS = 3
BATCH = 512  # the paper's
# Two products of u8 and s7 fit 16 bits: nothing saturates where there is no VNNI.
LARGEST_WEIGHT = 63
BIAS = 0.1


@dataclass(frozen=True)
class Chain:
    """Matrix products in a row.  activated: bias and ReLU behind each of them."""

    rows: int
    widths: tuple[int, ...]
    arithmetic: Arithmetic = "f32"
    activated: bool = False

    @property
    def kind(self) -> str:
        return "mlp" if self.activated else "gemm"

    @property
    def size(self) -> str:
        """M x K x N of a product; rows and width of a perceptron."""
        if self.activated:
            return f"{self.rows}x{self.widths[0]}"
        return f"{self.rows}x{'x'.join(map(str, self.widths))}"

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Rows and columns of each weight."""
        return list(zip(self.widths, self.widths[1:], strict=False))

    @property
    def flops(self) -> int:
        """Multiplications and additions of the products."""
        return 2 * self.rows * sum(k * n for k, n in self.pairs)

    @property
    def bytes(self) -> int:
        """What must at least be read and written: input, weights, output."""
        size = {"f32": 4, "mixed": 4, "int8": 1}.get(self.arithmetic, 2)
        weights = sum(k * n for k, n in self.pairs)
        weight_size = 2 if self.arithmetic == "mixed" else size
        ends = self.rows * (self.widths[0] + self.widths[-1])
        return ends * size + weights * weight_size


def mlp(width: int, arithmetic: Arithmetic, batch: int = BATCH) -> Chain:
    """The paper's perceptron: three layers with bias and ReLU."""
    return Chain(batch, (width,) * (LAYERS + 1), arithmetic, activated=True)


def gemm(m: int, k: int, n: int, arithmetic: Arithmetic) -> Chain:
    """y[m, n] = x[m, k] @ w[k, n], nothing else."""
    return Chain(m, (k, n), arithmetic)


@dataclass(frozen=True)
class Layer:
    """A weight [k, n] and perhaps a bias [n], with what follows them.

    weight_scale, scale, zero: of int8 weights and of the results as u8.
    """

    weight: Array
    bias: Array | None
    weight_scale: float = 1.0
    scale: float = 1.0
    zero: int = 0


@dataclass(frozen=True)
class Numbers:
    """An input and the layers of a chain; scale: of an int8 input."""

    x: Array
    layers: tuple[Layer, ...]
    scale: float = 1.0

    def arrays(self) -> dict[str, Array]:
        """x, w0, b0, w1, ... by name."""
        found = {"x": self.x}
        for index, layer in enumerate(self.layers):
            found[f"w{index}"] = layer.weight
            if layer.bias is not None:
                found[f"b{index}"] = layer.bias
        return found


def draw(chain: Chain, seed: int = 0) -> Numbers:
    """Random numbers for a chain: normal floats, uniform integers."""
    rng = np.random.default_rng(seed)
    if chain.arithmetic == "int8":
        return draw_integers(chain, rng)
    gain = 2.0 if chain.activated else 1.0  # a ReLU halves the mean square
    x = rng.standard_normal((chain.rows, chain.widths[0]), np.float32)
    layers: list[Layer] = []
    for k, n in chain.pairs:
        weight = rng.standard_normal((k, n), np.float32) * np.float32(
            math.sqrt(gain / k)
        )
        bias = BIAS * rng.standard_normal(n, np.float32) if chain.activated else None
        kept = None if bias is None else stored(bias, chain.arithmetic)
        layers.append(Layer(stored(weight, chain.arithmetic), kept))
    return Numbers(stored(x, chain.arithmetic), tuple(layers))


def stored(array: Array, arithmetic: Arithmetic) -> Array:
    """In the model's type; what is multiplied in bf16 is a bf16 number already."""
    if arithmetic == "f32":
        return array
    rounded = array.astype(BFLOAT16)
    return rounded.astype(np.float32) if arithmetic == "mixed" else rounded


def draw_integers(chain: Chain, rng: np.random.Generator) -> Numbers:
    """u8 inputs, s8 weights, scales that are powers of two.

    Every sum stays below 2^24 and every scale is exact: whichever way a system goes, in
    integers or in f32, it must arrive at the same integers.
    """
    assert chain.activated or len(chain.pairs) == 1  # between layers the zero is 0
    x = rng.integers(0, 256, (chain.rows, chain.widths[0]), np.uint8)
    values, scale = x.astype(np.float64), 2.0**-6
    layers: list[Layer] = []
    for k, n in chain.pairs:
        bound = LARGEST_WEIGHT + 1
        weight = rng.integers(1 - bound, bound, (k, n), np.int8)
        weight_scale = 2.0**-8
        # No sample is taken of the sums: their deviation follows from the inputs'.
        deviation = math.sqrt(k * float(np.mean(values**2)) * bound**2 / 3)
        unit = scale * weight_scale
        bias = None
        if chain.activated:
            whole = rng.integers(-int(deviation / 8) - 1, int(deviation / 8) + 2, n)
            bias = (whole * unit).astype(np.float32)
        made = 2.0 ** round(math.log2(deviation * unit / 64))
        layer = Layer(weight, bias, weight_scale, made, 0 if chain.activated else 128)
        layers.append(layer)
        values = quantized(values, scale, layer, chain.activated)
        scale = made
    return Numbers(x, tuple(layers), 2.0**-6)


def quantized(values: Array, scale: float, layer: Layer, activated: bool) -> Array:
    """What a layer makes of integers, exactly, in float64."""
    total = (values @ layer.weight.astype(np.float64)) * (scale * layer.weight_scale)
    if layer.bias is not None:
        total = total + layer.bias
    if activated:
        total = np.maximum(total, 0)
    return np.clip(np.rint(total / layer.scale) + layer.zero, 0, 255)
