"""Areas: a number times the product of two dimensions, each with a number beside it.

An image of (height - 2) * (width - 2) pixels, as windows without a border leave it, is
found from one sample, which a few pairs divide, and proved by the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import gcd, prod

import numpy as np

from nanoloom.dynamic.floor_division import dim_of, plain

FARTHEST = 64  # of the numbers beside dimensions
FACTORS = 64  # divisors that are tried


@dataclass(frozen=True)
class Area:
    """factor * (first + more) * (second + further), times other dimensions."""

    factor: int
    first: tuple[str, int]
    second: tuple[str, int]
    others: tuple[str, ...] = ()


def area_of(values: Sequence[int], samples: Sequence[Mapping[str, int]]) -> Area | None:
    """The area that is each of `values` for each of the samples; None for no such."""
    names = sorted(samples[0])
    if min(values) <= 0 or len({dim_of(name) for name in names}) < 2:
        return None
    for others in ((), *((name,) for name in plain(names))):
        known = [prod(sample[name] for name in others) for sample in samples]
        if any(v % k for v, k in zip(values, known, strict=True)):
            continue
        rest = [v // k for v, k in zip(values, known, strict=True)]
        left = [name for name in names if dim_of(name) not in others]
        for pair in combinations(left, 2):
            if dim_of(pair[0]) != dim_of(pair[1]):
                found = product_of(rest, samples, pair)
                if found is not None:
                    return Area(*found, others)
    return None


def product_of(
    values: Sequence[int], samples: Sequence[Mapping[str, int]], pair: tuple[str, str]
) -> tuple[int, tuple[str, int], tuple[str, int]] | None:
    """The numbers beside two dimensions."""
    x, y = (np.array([sample[name] for sample in samples]) for name in pair)
    beside = np.arange(-min(FARTHEST, int(x.min()) - 1), FARTHEST + 1)
    for factor in divisors(gcd(*values)):
        numbers = np.array(values) // factor
        rows = x[0] + beside
        for a in beside[numbers[0] % rows == 0]:
            b = int(numbers[0] // (x[0] + a) - y[0])
            if abs(b) <= FARTHEST and ((x + a) * (y + b) == numbers).all():
                return factor, (pair[0], int(a)), (pair[1], b)
    return None


def divisors(number: int) -> Iterator[int]:
    """Those of a number, small ones first, as far as they are tried."""
    tried = (n for n in range(1, min(number, 1 << 14) + 1) if number % n == 0)
    for _, n in zip(range(FACTORS), tried, strict=False):
        yield n
