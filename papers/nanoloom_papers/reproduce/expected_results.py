"""What a chain must give: float64 and how far rounding may lead, or exact integers.

Roundings are taken as independent, so their squares add up: a sum of k products has k
of at most u = 2^-24, a number kept in bf16 one of 2^-8; an error in a layer's input
goes through its weights.  Eight standard deviations are allowed: a correct result
exceeds them never, and one in which a tile is missing or a column swapped at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nanoloom_papers.reproduce.array_files import Array
from nanoloom_papers.reproduce.chains import Chain, Numbers, quantized

DEVIATIONS = 8.0
F32, BF16 = 2.0**-24, 2.0**-8  # the largest relative error of one rounding


@dataclass(frozen=True)
class Expected:
    """The right result, float64; allowed: how far each element may be, None for 0."""

    value: Array
    allowed: Array | None

    def complaint(self, got: Array) -> str:
        """Why a result is wrong, "" if it is right."""
        if got.shape != self.value.shape:
            return f"gives the shape {list(got.shape)}, not {list(self.value.shape)}"
        off = np.abs(got.astype(np.float64) - self.value)
        limit = 0.0 if self.allowed is None else self.allowed
        wrong = ~(off <= limit)  # NaN is wrong, too
        if not wrong.any():
            return ""
        part = 100 * float(wrong.mean())
        worst = float(np.nan_to_num(off, nan=np.inf).max())
        return f"wrong result: {part:.2g} % of the elements, off by up to {worst:.2g}"


def expected(chain: Chain, numbers: Numbers) -> Expected:
    """The result of a chain for its numbers."""
    if chain.arithmetic == "int8":
        return exact(chain, numbers)
    narrow = chain.arithmetic != "f32"
    value = numbers.x.astype(np.float64)
    variance = np.zeros(value.shape, np.float32)
    for layer in numbers.layers:
        weight = layer.weight.astype(np.float64)
        squares = (weight * weight).astype(np.float32)
        rounding = len(weight) * F32**2 * (value * value)
        variance = (variance + rounding.astype(np.float32)) @ squares
        product = value @ weight
        value = product
        if layer.bias is not None:
            value = product + layer.bias.astype(np.float64)
        if narrow:  # the product and the sum are kept in bf16
            variance = variance + BF16**2 * (product**2 + value**2).astype(np.float32)
        else:
            variance = variance + F32**2 * (product**2 + value**2).astype(np.float32)
        if chain.activated:
            value = np.maximum(value, 0)
    return Expected(value, DEVIATIONS * np.sqrt(variance.astype(np.float64)))


def exact(chain: Chain, numbers: Numbers) -> Expected:
    """Integers from 0 to 255."""
    value, scale = numbers.x.astype(np.float64), numbers.scale
    for layer in numbers.layers:
        value = quantized(value, scale, layer, chain.activated)
        scale = layer.scale
    return Expected(value, None)
