"""Areas: a number times the product of dimensions, each with a number beside it.

An image of (height - 2) * (width - 2) pixels, as windows without a border leave it, is
found from one sample, which a few pairs divide, and proved by the others.  So is a
volume, of three dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import gcd, prod

import numpy as np

from nanoloom.dynamic.floor_division import dim_of, plain

Side = tuple[int, str, int]
FARTHEST = 64  # of the numbers beside dimensions
FACTORS = 64  # divisors that are tried


@dataclass(frozen=True)
class Area:
    """factor * (times * one + more) * (another + further), times other dimensions.

    sides: two or three, with the number in front of the dimension and that beside it.
    """

    factor: int
    sides: tuple[Side, ...]
    others: tuple[str, ...] = ()


def area_of(
    values: Sequence[int], samples: Sequence[Mapping[str, int]], most: int = 1
) -> Area | None:
    """The area that is each of `values` for each of the samples; None for no such.

    most: the largest number in front of a dimension.
    """
    names = sorted(samples[0])
    if min(values) <= 0 or len({dim_of(name) for name in names}) < 2:
        return None
    for others in ((), *((name,) for name in plain(names))):
        known = [prod(sample[name] for name in others) for sample in samples]
        if any(v % k for v, k in zip(values, known, strict=True)):
            continue
        rest = [v // k for v, k in zip(values, known, strict=True)]
        left = [name for name in names if dim_of(name) not in others]
        for count in (2, 3):
            for each in combinations(left, count):
                if len({*map(dim_of, each)}) < count:
                    continue
                found = product_of(rest, samples, each, most)
                if found is not None:
                    return Area(*found, others)
    return None


def product_of(
    values: Sequence[int],
    samples: Sequence[Mapping[str, int]],
    names: Sequence[str],
    most: int,
) -> tuple[int, tuple[Side, ...]] | None:
    """The numbers beside two dimensions or more."""
    if len(names) == 2:
        pairs = ((names[0], names[1]), (names[1], names[0]))[: 1 + (most > 1)]
        tried = [(pair, (n, 1)) for n in range(1, most + 1) for pair in pairs]
        # Distances between patches: one less than twice as many along both sides.
        tried += [(pairs[0], (2, 2))] * (most > 1)
        made = (product_of_two(values, samples, pair, times) for pair, times in tried)
        return next((found for found in made if found), None)
    first, *others = names
    x, numbers = np.array([sample[first] for sample in samples]), np.array(values)
    beside = np.arange(-min(FARTHEST, int(x.min()) - 1), FARTHEST + 1)
    whole = (numbers % (x + beside[:, None]) == 0).all(1)
    for a in beside[whole]:
        rest = [int(n) for n in numbers // (x + a)]
        if (found := product_of(rest, samples, others, most)) is not None:
            return found[0], ((1, first, int(a)), *found[1])
    return None


def product_of_two(
    values: Sequence[int],
    samples: Sequence[Mapping[str, int]],
    pair: tuple[str, str],
    times: tuple[int, int],
) -> tuple[int, tuple[Side, Side]] | None:
    """The numbers beside two dimensions.  times: in front of them."""
    x, y = (np.array([sample[name] for sample in samples]) for name in pair)
    x, y = x * times[0], y * times[1]
    beside = np.arange(-min(FARTHEST, int(x.min()) - 1), FARTHEST + 1)
    for factor in divisors(gcd(*values)):
        numbers = np.array(values) // factor
        rows = x[0] + beside
        for a in beside[numbers[0] % rows == 0]:
            b = int(numbers[0] // (x[0] + a) - y[0])
            if abs(b) <= FARTHEST and ((x + a) * (y + b) == numbers).all():
                return factor, ((times[0], pair[0], int(a)), (times[1], pair[1], b))
    return None


def divisors(number: int) -> Iterator[int]:
    """Those of a number, small ones first, as far as they are tried."""
    tried = (n for n in range(1, min(number, 1 << 14) + 1) if number % n == 0)
    for _, n in zip(range(FACTORS), tried, strict=False):
        yield n
