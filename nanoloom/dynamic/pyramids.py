"""All places of a pyramid of images, as detectors have them one behind the other.

    21 * ((h + 31) // 32) * ((w + 31) // 32) + ((h + 63) // 64) * ((w + 63) // 64) + ...

Levels that halve without a rest are multiples of one of them; those that round up are
terms of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

from nanoloom.dynamic.floor_division import floors_of

Samples = Sequence[Mapping[str, int]]
Level = tuple[str, str]  # floors of a height and a width
DEEPEST = 3  # levels that are terms: a sample more proves them


def pyramid_of(
    values: Sequence[int], samples: Samples
) -> tuple[tuple[int, Level], ...] | None:
    """The sum of two or three levels that is each value for each sample; None for none.

    Coefficients are whole and above 0.
    """
    if len(samples) <= DEEPEST:
        return None
    columns = {
        level: [sample[level[0]] * sample[level[1]] for sample in samples]
        for level in levels_of(samples)
    }
    for count in range(2, DEEPEST + 1):
        for chosen in combinations(columns, count):
            rows = list(zip(*[columns[level] for level in chosen], strict=True))
            found = solved(rows[:count], values[:count])
            if found is None or any(c.denominator != 1 or c < 1 for c in found):
                continue
            whole = [int(c) for c in found]
            pairs = zip(rows, values, strict=True)
            if all(sumprod(whole, row) == value for row, value in pairs):
                return tuple(zip(whole, chosen, strict=True))
    return None


def sumprod(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(a * b for a, b in zip(one, other, strict=True))


def levels_of(samples: Samples) -> Iterator[Level]:
    """Pairs of floors of two dimensions that are divided alike."""
    floors = floors_of(samples[0])
    for one, other in combinations(floors, 2):
        alike = (one.add, one.over, one.times) == (other.add, other.over, other.times)
        if alike and one.dim != other.dim:
            yield one.name, other.name


def solved(
    rows: Sequence[Sequence[int]], values: Sequence[int]
) -> list[Fraction] | None:
    """The numbers that so many equations give, by elimination; None for several."""
    table = [
        [Fraction(x) for x in (*row, v)] for row, v in zip(rows, values, strict=True)
    ]
    for place in range(len(table)):
        pivot = next((row for row in table[place:] if row[place]), None)
        if pivot is None:
            return None
        table.remove(pivot)
        pivot = [x / pivot[place] for x in pivot]
        table = [
            [x - row[place] * p for x, p in zip(row, pivot, strict=True)]
            for row in table
        ]
        table.insert(place, pivot)
    return [row[-1] for row in table]
