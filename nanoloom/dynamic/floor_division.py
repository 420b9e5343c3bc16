"""A dimension that is divided and rounded down: the rows that windows of stride 2 give.

Or a multiple of it: an image that is resized by 1.5 has (3 * height) // 2 rows.

A floor is a number like a dimension: polynomials are made of both
(dynamic/polynomial.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Floor:
    """(times * dim + add) // over, 0 <= add < over; times and over share no factor."""

    dim: str
    add: int
    over: int
    times: int = 1

    @property
    def name(self) -> str:
        whole = self.dim if self.times == 1 else f"{self.times} * {self.dim}"
        return f"({whole} + {self.add}) // {self.over}"

    @staticmethod
    def named(text: str) -> Floor | None:
        """The floor of this name; None for a dimension's."""
        inner, slashes, over = text.rpartition(") // ")
        whole, plus, add = inner[1:].rpartition(" + ")
        if not (slashes and plus):
            return None
        times, star, dim = whole.partition(" * ")
        if not (star and times.isdecimal()):
            times, dim = "1", whole
        return Floor(dim, int(add), int(over), int(times))

    def of(self, dims: Mapping[str, int]) -> int:
        return (self.times * dims[self.dim] + self.add) // self.over


def dim_of(name: str) -> str:
    """The dimension of a floor by its name, or the dimension itself."""
    floor = Floor.named(name)
    return name if floor is None else floor.dim


def floors_of(names: Iterable[str]) -> tuple[Floor, ...]:
    """Those among the names of dimensions and floors."""
    made = (Floor.named(name) for name in names)
    return tuple(floor for floor in made if floor is not None)


def plain(names: Iterable[str]) -> tuple[str, ...]:
    """The dimensions among the names of dimensions and floors."""
    return tuple(name for name in names if Floor.named(name) is None)
