"""A size that is known when a program runs: a polynomial of the model's dimensions.

It is found from what it was for a few samples of the dimensions, and proved by more of
them than it has coefficients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, combinations_with_replacement
from math import prod
from typing import TypeAlias

Dims: TypeAlias = Mapping[str, int]
Monomial: TypeAlias = tuple[str, ...]  # names of dimensions, () for 1
DEGREE = 3  # of the largest product of dimensions: bytes of [batch, length, length]


@dataclass(frozen=True)
class Size:
    """The sum of coefficient times product of dimensions, over `terms`.

    Prints `2 * batch * length + 1`.
    """

    terms: tuple[tuple[int, Monomial], ...]

    def of(self, dims: Dims) -> int:
        """The number for these dimensions."""
        return sum(c * prod(dims[name] for name in names) for c, names in self.terms)

    def times(self, factor: int) -> Size:
        return Size(tuple((c * factor, names) for c, names in self.terms))

    @cached_property
    def number(self) -> int | None:
        """What it is for all dimensions alike; None for none."""
        constant = all(not names for _, names in self.terms)
        return sum(c for c, _ in self.terms) if constant else None

    def __str__(self) -> str:
        words = [
            " * ".join([str(c)] * (c != 1 or not names) + list(names))
            for c, names in self.terms
        ]
        return " + ".join(words) or "0"


def number(n: int) -> Size:
    """A size that is always n."""
    return Size(((n, ()),) if n else ())


def found(values: Sequence[int], samples: Sequence[Dims]) -> Size | None:
    """The simplest size that is each of `values` for each of the samples.

    One product of dimensions, such with a number, or two products; None for others.
    There must be three samples or more: two numbers are found and one proves them.  Of
    several that fit, the one with the smallest coefficients: x + y and not 4 z + 268.
    """
    if len(set(values)) == 1:
        return number(values[0])
    products = list(monomials(samples[0]))
    seen = {names: [prod(s[n] for n in names) for s in samples] for names in products}
    for names in products:
        size = checked(fit_one(values[0], seen[names][0], names), values, samples)
        if size is not None:
            return size
    ones: Monomial = ()
    seen[ones] = [1] * len(samples)
    pairs = [(names, ones) for names in products] + list(combinations(products, 2))
    fitting: list[Size] = []
    for pair in pairs:
        columns = (seen[pair[0]][:2], seen[pair[1]][:2])
        size = checked(fit_two(values[:2], columns, pair), values, samples)
        if size is not None:
            fitting.append(size)
    return min(fitting, key=weight, default=None)


def weight(size: Size) -> int:
    return sum(abs(coefficient) for coefficient, _ in size.terms)


def monomials(dims: Dims) -> Iterator[Monomial]:
    """The products of dimensions, simple ones first."""
    for degree in range(1, DEGREE + 1):
        yield from combinations_with_replacement(sorted(dims), degree)


def fit_one(value: int, product: int, names: Monomial) -> Size | None:
    return None if value % product else Size(((value // product, names),))


def fit_two(
    values: Sequence[int],
    columns: tuple[Sequence[int], Sequence[int]],
    names: tuple[Monomial, Monomial],
) -> Size | None:
    """The whole coefficients of two products that give two values, by Cramer's rule."""
    (a, c), (b, d) = columns
    whole = a * d - b * c
    if not whole:
        return None
    first = values[0] * d - b * values[1]
    second = a * values[1] - values[0] * c
    if first % whole or second % whole:
        return None
    return Size(((first // whole, names[0]), (second // whole, names[1])))


def checked(
    size: Size | None, values: Sequence[int], samples: Sequence[Dims]
) -> Size | None:
    """The size, if it is right for all samples."""
    right = size is not None and all(
        size.of(dims) == value for dims, value in zip(samples, values, strict=True)
    )
    return size if right else None
