"""How far a loop goes: a number, a size known at run time, or lanes of a vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Bounded:
    """A size that is known when the program runs.  most: it is never larger."""

    name: str
    most: int

    def __str__(self) -> str:
        return f"{self.name} (at most {self.most})"


@dataclass(frozen=True)
class Lanes:
    """The width of a vector: so many numbers, or as many times vscale.

    Prints 16 or [4], as MLIR writes vector<16xf32> and vector<[4]xf32>.
    """

    count: int
    scalable: bool = False

    def __str__(self) -> str:
        return f"[{self.count}]" if self.scalable else str(self.count)

    def __repr__(self) -> str:
        return f"Lanes({self.count}{', scalable=True' * self.scalable})"


ONE = Lanes(1)  # a number
Extent: TypeAlias = int | Bounded | Lanes
