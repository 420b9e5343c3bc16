"""Axes, and the indices that are written with them: sums of axes times numbers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from nanoloom.errors import Error
from nanoloom.notation.unknown import Unknown

_places = itertools.count()  # axes nest in the order in which they were named


@dataclass(frozen=True)
class Axis:
    """One loop.  extent: stated; None where the shapes of buffers say it."""

    name: str
    extent: int | None = None
    place: int = field(default_factory=lambda: next(_places), compare=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Index(Unknown):
    """offset + sum of factor * axis; terms: each axis once, no factor is 0."""

    terms: tuple[tuple[Axis, int], ...]
    offset: int = 0

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(axis for axis, _ in self.terms)

    @property
    def plain(self) -> Axis | None:
        """The axis that the index is, None if it is anything else."""
        plain = not self.offset and len(self.terms) == 1 and self.terms[0][1] == 1
        return self.terms[0][0] if plain else None

    def ends(self, extents: Mapping[Axis, int]) -> tuple[int, int]:
        """The smallest and the largest value, every axis from 0 to its extent."""
        low = high = self.offset
        for axis, factor in self.terms:
            last = factor * (extents[axis] - 1)
            low, high = low + min(last, 0), high + max(last, 0)
        return low, high

    def __add__(self, other: object) -> Index:
        if isinstance(other, Unknown) and not isinstance(other, Index):
            return NotImplemented
        more = index_of(other, f"{self} + {other}")
        factors = dict(self.terms)
        for axis, factor in more.terms:
            factors[axis] = factors.get(axis, 0) + factor
        terms = tuple((a, f) for a, f in factors.items() if f)
        return Index(terms, self.offset + more.offset)

    def __mul__(self, other: object) -> Index:
        if isinstance(other, Unknown) and not isinstance(other, Index):
            return NotImplemented
        if isinstance(other, Index):
            refuse(f"({self}) * ({other})")
        other = number_of(other, f"({self}) * {other}")
        terms = tuple((axis, factor * other) for axis, factor in self.terms if other)
        return Index(terms, self.offset * other)

    def __sub__(self, other: object) -> Index:
        if isinstance(other, Unknown) and not isinstance(other, Index):
            return NotImplemented
        return self + -index_of(other, f"{self} - {other}")

    def __neg__(self) -> Index:
        return self * -1

    def __rsub__(self, other: int) -> Index:
        return -self + other

    def __radd__(self, other: int) -> Index:
        return self + other

    def __rmul__(self, other: int) -> Index:
        return self * other

    @property
    def written(self) -> str:
        return str(self) if self.plain else f"({self})"

    def refuse(self, text: str) -> NoReturn:
        refuse(text)

    def __lt__(self, other: object) -> NoReturn:
        refuse_comparison(self)

    __le__ = __gt__ = __ge__ = __lt__

    def __str__(self) -> str:
        parts = [str(a) if f == 1 else f"{f} * {a}" for a, f in self.terms]
        if self.offset or not parts:
            parts.append(str(self.offset))
        return " + ".join(parts).replace("+ -", "- ")


def index_of(value: object, text: str = "") -> Index:
    """A number or an index as an index; raises Error for anything else.

    text: the expression that it is part of.
    """
    if isinstance(value, Index):
        return value
    return Index((), number_of(value, text or str(value)))


def number_of(value: object, text: str) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        refuse(text)
    return int(value)


def refuse(text: str) -> NoReturn:
    raise Error(
        f"the index {text} is no sum of axes times numbers",
        hint="write indices like i, i + 1 or 2 * j + k",
    )


def refuse_comparison(index: Index) -> NoReturn:
    raise Error(
        f"the index {index} is no value that can be compared",
        hint=f"write position({index})",
    )


def require_extent(name: str, extent: object) -> None:
    if isinstance(extent, bool) or not isinstance(extent, int) or extent < 1:
        raise Error(f"axis {name} has the extent {extent}", hint="give at least 1")


def axes(names: str, **extents: int) -> tuple[Index, ...]:
    """Axes by their names: i, j, k = axes("i j k"), or axes("i k", k=3) with extents.

    An extent that is not stated follows from the shapes.  Reduced axes nest in the
    order in which they were named.  Raises Error for names that are none or not there.
    """
    words = names.replace(",", " ").split()
    for name in (*words, *extents):
        if not name.isidentifier():
            raise Error(f"{name!r} is no name for an axis")
    if unknown := [name for name in extents if name not in words]:
        raise Error(f"an extent is given for {unknown[0]}, which is none of {names!r}")
    for name, extent in extents.items():
        require_extent(name, extent)
    return tuple(Index(((Axis(name, extents.get(name)), 1),)) for name in words)
