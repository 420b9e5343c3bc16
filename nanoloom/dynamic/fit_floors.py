"""Sizes that are divided and rounded down, while the samples of a model are compared.

A floor is always one of a dimension:

    floor((floor((x + a) / m) + b) / n) = floor((x + a + b m) / (m n))
    floor((c x + b) / n) = floor((x + floor(b / c)) / (n / c))      where c divides n
    floor((floor((c x + a) / m) + b) / n) = floor((c x + a + b m) / (m n))

Whole steps stand beside it: floor((x + n) / n) = floor(x / n) + 1.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from itertools import combinations
from math import gcd
from random import Random

from nanoloom.dynamic.dynamic_refusal import NotDynamic, no_size
from nanoloom.dynamic.floor_division import Floor, dim_of, floors_of, plain
from nanoloom.dynamic.polynomial import Dims, Monomial, Size, found
from nanoloom.dynamic.samples import MULTIPLE

MOST = 48  # floors of one model
LEAST, LARGEST = 130, 420  # numbers of pixels that are tried
PARTS = 6  # or so many times what the deepest level of a pyramid makes one of
TRIES = 400
Samples = Sequence[MutableMapping[str, int]]
Term = tuple[int, Monomial]


def divided(numbers: Sequence[int], over: int, samples: Samples) -> Size:
    """A size divided by `over` and rounded down; samples get a floor for it.

    numbers: the size, by samples.  Raises Differs for what is no multiple of a
    dimension, or of a floor, and a number.
    """
    size = found(numbers, samples)
    if size is None:
        raise no_size("what is divided", samples[0])
    whole = sum(c for c, names in size.terms if not names)
    terms = [in_parts(term, samples) for term in size.terms if term[1]]
    if any(c % over for c, _ in terms):
        return one_floor(terms, whole, over, samples)
    return summed([(c // over, names) for c, names in terms], whole // over)


def summed(terms: Sequence[Term], number: int) -> Size:
    return Size((*terms, *([(number, ())] if number else [])))


def in_parts(term: Term, samples: Samples) -> Term:
    """A multiple of a dimension as one of its part, where it has any."""
    factor, names = term
    for floor in floors_of(samples[0]):
        if names == (floor.dim,) and is_part(floor, samples):
            return factor * floor.over, (floor.name,)
    return term


def is_part(floor: Floor, samples: Sequence[Dims]) -> bool:
    """Whether nothing is ever left over, as samples of multiples have it."""
    pairs = [(s[floor.dim], s[floor.name]) for s in samples]
    whole = floor.times == 1 and not floor.add
    return whole and all(n == floor.over * part for n, part in pairs)


def one_floor(terms: Sequence[Term], whole: int, over: int, samples: Samples) -> Size:
    """floor((factor * x + whole) / over), x a dimension or a floor."""
    (factor, names), *others = terms
    if others or len(names) != 1 or factor < 1:
        raise NotDynamic("a sum of sizes is divided")
    common = gcd(factor, over)
    factor, add, over = factor // common, whole // common, over // common
    inner = Floor.named(names[0]) or Floor(names[0], 0, 1)
    if factor > 1 and inner.over > 1:
        raise NotDynamic("a multiple of what was rounded down is divided")
    add, over = inner.add + add * inner.over, inner.over * over
    times = factor * inner.times
    common = gcd(times, over)
    steps, add = divmod(add // common, over // common)
    made = Floor(inner.dim, add, over // common, times // common)
    for sample in samples:
        sample.setdefault(made.name, made.of(sample))
    return summed([(1, (made.name,))], steps)


def is_ambiguous(samples: Sequence[Dims]) -> list[tuple[str, str]]:
    """Sizes one of which samples have as a multiple of the other, and a number.

    Then one could be taken for the other, which other samples would tell apart.
    """
    names, floors = list(samples[0]), floors_of(samples[0])
    parts = {(f.dim, f.name) for f in floors if is_part(f, samples)}
    pairs = [p for p in combinations(names, 2) if dim_of(p[0]) == dim_of(p[1])]
    known = [p for p in pairs if not {p, p[::-1]} & parts]
    found = [(a, b) for a, b in known if is_linear([(s[a], s[b]) for s in samples])]
    found += [(n, n) for n in names if samples[0][n] == samples[1][n]]  # they solve
    return found


def distinguished(samples: Sequence[Dims]) -> tuple[Dims, ...]:
    """Samples that confuse no sizes, the first of them as it was.

    Raises Differs if there are none at hand.
    """
    if len(floors_of(samples[0])) > MOST:
        raise NotDynamic("too many sizes are divided")
    made = [dict(sample) for sample in samples]
    for dim in plain(samples[0]):
        names = [name for name in samples[0] if dim_of(name) == dim]
        rows = [{name: s[name] for name in names} for s in samples]
        for sample, row in zip(made, of_one(dim, rows), strict=True):
            sample.update(row)
    return tuple(made)


def of_one(dim: str, rows: Sequence[Dims]) -> Sequence[Mapping[str, int]]:
    """The same for one dimension and its floors."""
    random = Random(len(rows))
    for _ in range(TRIES):
        if not is_ambiguous(rows):
            return rows
        rows = [rows[0], *(shifted(row, dim, random) for row in rows[1:])]
    raise NotDynamic(f"samples do not tell sizes of {dim} apart")


def shifted(row: Dims, dim: str, random: Random) -> Dims:
    """A sample in which a dimension has another number."""
    step = 1 if row[dim] % MULTIPLE else MULTIPLE
    deepest = max((floor.over for floor in floors_of(row)), default=1)
    least, largest = LEAST, max(LARGEST, PARTS * deepest)
    if row[dim] > largest:  # a signal's length, in the range of which others are
        least, largest = row[dim] // 2, 2 * row[dim]
    number = random.randrange(least // step, largest // step) * step
    made = {dim: number + (step == 1 and number % MULTIPLE == 0)}
    return made | {floor.name: floor.of(made) for floor in floors_of(row)}


def is_linear(points: Sequence[tuple[int, int]]) -> bool:
    (x, y), *others = points
    ways = [(a - x, b - y) for a, b in others]
    return all(a * d == b * c for (a, b), (c, d) in combinations(ways, 2))
