"""A dimension that is divided and rounded down: the rows that windows of stride 2 give.

A floor is a number like a dimension: polynomials are made of both
(sizes/polynomial.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Floor:
    """(dim + add) // over, 0 <= add < over."""

    dim: str
    add: int
    over: int

    @property
    def name(self) -> str:
        return f"({self.dim} + {self.add}) // {self.over}"

    @staticmethod
    def named(text: str) -> Floor | None:
        """The floor of this name; None for a dimension's."""
        inner, slashes, over = text.rpartition(") // ")
        dim, plus, add = inner[1:].rpartition(" + ")
        return Floor(dim, int(add), int(over)) if slashes and plus else None

    def of(self, dims: Mapping[str, int]) -> int:
        return (dims[self.dim] + self.add) // self.over


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
