"""What a program looks at when it has run: whether the indices it read were in range.

Each check is a word in memory that the program itself computes.  The words are results
of @main behind the model's outputs; those of a loop or a branch leave it first.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from nanoloom.errors import ModelError
from nanoloom.linalg.builder.tensor import Array, Tensor

UINT64 = np.dtype(np.uint64)


@dataclass(frozen=True)
class Limits:
    """The indices that a node allows, low .. high, and the words for any other.

    low is 0, or counts as many places from the end: -(high + 1).  where: the node;
    what: the kind of index; "" where no index is meant, and `where` says all.
    """

    low: int
    high: int
    where: str
    what: str

    def __post_init__(self) -> None:
        assert self.low in (0, -self.high - 1), self

    def refuse(self, known: Array) -> None:
        """Raise ModelError for the first of these indices that is out of range."""
        outside = known[(known < self.low) | (known > self.high)]
        if outside.size:
            raise ModelError(
                f"{self.what} {outside[0]} is outside {self.low}..{self.high}",
                where=self.where,
            )


@dataclass(frozen=True, eq=False)
class Check:
    """words: uint64, one for each of the limits, of the index that is farthest out.

    It is the index itself, or 2 i for i >= 0 and -2 i - 1 for i < 0 where indices count
    from both ends; so it is too large exactly if an index is out of range.
    """

    words: Tensor
    limits: tuple[Limits, ...]


@dataclass
class Checks:
    """The checks of a program while it is lowered, in the order of its nodes.

    wanted: at run time; indices known while compiling are always looked at.
    nested: in the body of a loop or a branch, which may never run.  is_open: of a
    program for all sizes.
    """

    wanted: bool = False
    nested: bool = False
    is_open: bool = False
    made: list[Check] = field(default_factory=list[Check])

    @contextmanager
    def body(self) -> Generator[list[Check]]:
        """Collects the checks of a body apart from those around it."""
        outer = self.made, self.nested
        self.made, self.nested = [], True
        yield self.made
        self.made, self.nested = outer
