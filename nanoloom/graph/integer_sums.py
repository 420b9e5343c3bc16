"""Sums of two 8-bit numbers between quantizations are two products and a rounding.

    Quantize(f(Dequantize(a) + Dequantize(b)))  ->  nanoloom.integer.Sum(a, b)

    round(clip(a * by_a + (b * by_b + start), least, most))        in f32

f: nothing, Relu or Clip.  ONNX divides, and rounds five times.  There are 65,536 pairs
of numbers: its reference gives the result of each, and the formula is taken only where
it has all of them, with and without fused multiply and add.  Where one of the rounded
constants puts a pair on the wrong side of a tie, its neighbours are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from nanoloom.graph.quantization import BITS, Quantized

RANGE = 2.0**-16, 2.0**8  # of factors: float64 holds the formula's sums as they are
FARTHEST = 2.0**15  # what `start` is at most
GRID = 2.0**18  # and of what it is a whole part
NEAR = 2.0**-9  # of a tie: what f32 may put on its other side
STEPS = range(-4, 5)  # of units in the last place


@dataclass(frozen=True)
class Formula:
    """round(clip(a * by_a + (b * by_b + start), least, most)) in f32."""

    by_a: np.float32
    by_b: np.float32
    start: np.float32
    least: int
    most: int

    def of(self, a: np.ndarray, b: np.ndarray, fused: Sequence[bool]) -> np.ndarray:
        """Results for whole numbers in float64, which holds products and their sums.

        fused: whether the product of a, and that of b, is not rounded by itself.
        """
        inner = plus(
            b * np.float64(self.by_b), np.asarray(self.start, np.float64), fused[1]
        )
        total = plus(a * np.float64(self.by_a), inner, fused[0])
        return np.rint(np.clip(total, self.least, self.most))


def plus(product: np.ndarray, more: np.ndarray, fused: bool) -> np.ndarray:
    """A product and a number, rounded to f32 once or twice."""
    whole = product if fused else product.astype(np.float32).astype(np.float64)
    return (whole + more).astype(np.float32).astype(np.float64)


def formula_of(
    a: Quantized, b: Quantized, wanted: Quantized, results: np.ndarray
) -> Formula | None:
    """One that gives the results of all pairs, None if none is found."""
    by = [float(x.scale) / float(wanted.scale) for x in (a, b)]
    first, second, last = (0 if x.zero is None else int(x.zero) for x in (a, b, wanted))
    start = last - (by[0] * first + by[1] * second)
    if not all(RANGE[0] < f < RANGE[1] for f in by) or abs(start) > FARTHEST:
        return None
    every = [BITS.view(x.kind).astype(np.float64) for x in (a, b)]
    one, other = np.meshgrid(*every, indexing="ij")
    exact = one * by[0] + other * by[1] + start
    near = abs(abs(exact - np.floor(exact)) - 0.5) < NEAR
    limits = int(results.min()), int(results.max())
    for constants in adjacent_quantizations(by[0], by[1], start):
        found = Formula(*constants, *limits)
        if produces(found, one[near], other[near], results[near]):
            return found if produces(found, one, other, results) else None
    return None


def adjacent_quantizations(
    by_a: float, by_b: float, start: float
) -> Iterator[tuple[np.float32, np.float32, np.float32]]:
    """The constants in f32, and others beside them: the nearest first."""
    steps = sorted(product(STEPS, repeat=3), key=lambda s: sum(abs(x) for x in s))
    factors = np.float32(by_a), np.float32(by_b)
    for *ulps, shift in steps:
        moved = (f + np.spacing(f) * n for f, n in zip(factors, ulps, strict=True))
        first, second = (np.float32(f) for f in moved)
        yield first, second, np.float32((np.rint(start * GRID) + shift) / GRID)


def produces(
    formula: Formula, a: np.ndarray, b: np.ndarray, results: np.ndarray
) -> bool:
    ways = (formula.of(a, b, fused) for fused in product((True, False), repeat=2))
    return all(bool((way == results).all()) for way in ways)
