"""A size that is known when a program runs: a polynomial of the model's dimensions.

It is found from what it was for a few samples of the dimensions, and proved by more of
them than it has coefficients.  Samples may have floors of dimensions
(dynamic/floor_division.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, combinations_with_replacement, product
from math import gcd, isqrt, prod
from typing import TypeAlias

from nanoloom.dynamic.areas import area_of, divisors
from nanoloom.dynamic.floor_division import Floor, dim_of, floors_of, plain
from nanoloom.dynamic.pyramids import pyramid_of

Dims: TypeAlias = Mapping[str, int]
Monomial: TypeAlias = tuple[str, ...]  # names of dimensions, () for 1
DEGREE = 4  # of a product of dimensions: elements of a batch of volumes
FACTORS = 6  # of a term, as NANOLOOM_FACTORS: pairs of an image's pixels in a batch
FARTHEST = 4  # rows, columns and planes of a border
POWER = 3  # of one in which a dimension is twice: bytes of [batch, length, length]


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

    def by(self, other: Size) -> Size:
        """The product, of any degree."""
        sums: dict[Monomial, int] = {}
        for (c, one), (d, two) in product(self.terms, other.terms):
            names = tuple(sorted((*one, *two)))
            sums[names] = sums.get(names, 0) + c * d
        return Size(tuple((c, names) for names, c in sums.items() if c))

    @property
    def degree(self) -> int:
        return max((len(names) for _, names in self.terms), default=0)

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

    One product of dimensions, such with a number, two products, or an area
    (dynamic/areas.py); None for others.
    There must be three samples or more: two numbers are found and the others prove
    them.  Of several that fit, the one with the smallest coefficients: x + y and not
    4 z + 268.
    """
    if len(set(values)) == 1:
        return number(values[0])
    return search(tuple(values), tuple(tuple(s.items()) for s in samples))


@lru_cache(maxsize=1 << 14)
def search(
    values: tuple[int, ...], samples: tuple[tuple[tuple[str, int], ...], ...]
) -> Size | None:
    """The same for values that differ."""
    dims = [dict(sample) for sample in samples]
    names = tuple(sorted(dims[0]))
    products, pairs = products_of(names), pairs_of(names)
    seen = {names: [prod(s[n] for n in names) for s in dims] for names in products}
    for names in products:
        size = checked(fit_one(values[0], seen[names][0], names), values, dims)
        if size is not None:
            return size
    seen[()] = [1] * len(dims)
    fitting: list[Size] = []
    for pair in pairs:
        columns = (seen[pair[0]][:2], seen[pair[1]][:2])
        size = checked(fit_two(values[:2], columns, pair), values, dims)
        if size is not None:
            fitting.append(size)
    fit = min(fitting, key=weight, default=None) or area(values, dims)
    return fit or square(values, dims) or pyramid(values, dims)


def pyramid(values: Sequence[int], samples: Sequence[Dims]) -> Size | None:
    """The places of several levels of an image, added (dynamic/pyramids.py)."""
    made = pyramid_of(values, samples)
    return None if made is None else Size(made)


def square(values: tuple[int, ...], samples: Sequence[Dims]) -> Size | None:
    """The square of another size, and others beside it: all pairs of pixels."""
    known = plain(samples[0])
    for beside in (c for n in range(DEGREE - 1) for c in combinations(known, n)):
        counts = [prod(s[name] for name in beside) for s in samples]
        if min(values) <= 0 or any(
            not n or v % n for v, n in zip(values, counts, strict=True)
        ):
            continue
        rest = [v // n for v, n in zip(values, counts, strict=True)]
        for factor in divisors(gcd(*rest)):
            roots = [isqrt(n // factor) for n in rest]
            if any(factor * r * r != n for r, n in zip(roots, rest, strict=True)):
                continue
            if (root := found(roots, samples)) is not None:
                size = Size(((factor, beside),)).by(root).by(root)
                return size if size.degree <= FACTORS else None
    return None


def beginning(values: Sequence[int], samples: Sequence[Dims]) -> Size | None:
    """Where a part of a tensor begins behind borders: c * ((2 n + 5) * (m + 2) + 1)."""
    if (size := found(values, samples)) is not None:
        return size
    least = gcd(*values)
    for more in range(0, FARTHEST * least, least):
        rest = tuple(n - more for n in values)
        if (size := area(rest, samples, FARTHEST)) is not None:
            return Size((*size.terms, (more, ()))) if more else size
    return None


def area(
    values: tuple[int, ...], samples: Sequence[Dims], most: int = 1
) -> Size | None:
    """A product of dimensions with numbers beside them, multiplied out."""
    made = area_of(values, samples, most)
    if made is None:
        return None
    factors = (
        Size(((times, (name,)), *([(more, ())] if more else [])))
        for times, name, more in made.sides
    )
    size = Size(((made.factor, made.others),))
    for factor in factors:
        size = size.by(factor)
    return size if size.degree <= DEGREE else None


@lru_cache
def products_of(names: tuple[str, ...]) -> tuple[Monomial, ...]:
    """Of dimensions, simple ones first, and those with floors.

    With floors, of each dimension there is one factor.
    """
    known = plain(names)
    return (*monomials(known), *with_floors(names))


@lru_cache
def pairs_of(names: tuple[str, ...]) -> tuple[tuple[Monomial, Monomial], ...]:
    """Products that are added: any two of dimensions, and one with a number.

    Of floors one with itself but for a factor, what lies around an image, or but for
    all floors: a token for each row of a batch in front of an image's. A dimension with
    its floor: what is left over.
    """
    known, others = list(monomials(plain(names))), with_floors(names)
    rows = [(m, ()) for m in (*known, *others)]
    fewer = [(m, (*m[:i], *m[i + 1 :])) for m in others for i in range(len(m))]
    fewer += [(m, plain(m)) for m in others if len(m) > len(plain(m)) + 1]
    rows += [((floor.dim,), (floor.name,)) for floor in floors_of(names)]
    return (*rows, *combinations(known, 2), *(pair for pair in fewer if pair[1]))


def with_floors(names: tuple[str, ...]) -> list[Monomial]:
    """Products of a floor with others, of one dimension each."""
    rows: dict[str, list[str]] = {}
    for name in names:
        rows.setdefault(dim_of(name), [""]).append(name)
    made = [tuple(n for n in each if n) for each in product(*rows.values())]
    right = [m for m in made if len(m) <= DEGREE and any(map(Floor.named, m))]
    return [tuple(sorted(m)) for m in sorted(right, key=len)]


def weight(size: Size) -> int:
    return sum(abs(coefficient) for coefficient, _ in size.terms)


def monomials(names: Sequence[str]) -> Iterator[Monomial]:
    """The products of dimensions, simple ones first."""
    for degree in range(1, POWER + 1):
        yield from combinations_with_replacement(sorted(names), degree)
    yield from combinations(sorted(names), DEGREE)


def fit_one(value: int, product: int, names: Monomial) -> Size | None:
    """The whole coefficient; none of a floor that is 0 in a sample."""
    fits = product and value % product == 0
    return Size(((value // product, names),)) if fits else None


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


def used_floors(words: Sequence[Size]) -> tuple[Floor, ...]:
    """The floors of dimensions that sizes are made of."""
    names = (name for word in words for _, each in word.terms for name in each)
    return floors_of(dict.fromkeys(names))
