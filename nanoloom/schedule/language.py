"""The words of a schedule: each is a value, and a schedule is a tuple of them.

A schedule prints, hashes and compares; `apply` makes the loops of a nest that it means,
and `emit.py` alone makes a Transform script of those.  A stage and its axes are named
as its nest names them (nest/stage.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.packing import Packing
from nanoloom.schedule.words.copies import CopyOperand, Hoist
from nanoloom.schedule.words.fusion import ComputeAt
from nanoloom.schedule.words.loops import (
    Reorder,
    Split,
    Unroll,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.schedule.words.memory import Prefetch
from nanoloom.schedule.words.nanokernel import Nanokernel
from nanoloom.schedule.words.pad import Pad
from nanoloom.schedule.words.pipeline import Pipeline
from nanoloom.schedule.words.stationary import Stationary
from nanoloom.schedule.words.store_at import StoreAt
from nanoloom.schedule.words.sums import FIRST, RESULT, Peel, SplitReduction, StoreApart
from nanoloom.schedule.words.tiles import ALL, Parallel, Tile
from nanoloom.schedule.words.turn import Turn
from nanoloom.schedule.words.word import require_words

Directive: TypeAlias = (
    Packing
    | Prefetch
    | Parallel
    | Tile
    | ComputeAt
    | Split
    | Reorder
    | Peel
    | SplitReduction
    | StoreApart
    | StoreAt
    | Nanokernel
    | Vectorize
    | Unroll
    | UnrollAndJam
    | Pipeline
    | CopyOperand
    | Pad
    | Hoist
    | Turn
    | Stationary
)


Words: TypeAlias = tuple[Directive, ...]


@dataclass(frozen=True)
class Candidate:
    """What else a kernel could have been made by, and what was predicted of it.

    cost: cycles for the least work that there is, 1 at best.
    """

    directives: tuple[Directive, ...]
    reason: str
    cost: float


def nothing() -> Sequence[Candidate]:
    """Nothing was weighed."""
    return ()


@dataclass(frozen=True)
class Schedule:
    """How one kernel is made.

    reason: why, in words, for people; weighed: makes all that were weighed, the
    cheapest first, this one among them: most kernels are compiled without a look at
    them.  Both are no part of what a schedule is.
    """

    directives: tuple[Directive, ...]
    reason: str = field(default="", compare=False)
    weighed: Callable[[], Sequence[Candidate]] = field(
        default=nothing, compare=False, repr=False
    )

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All that were weighed, the cheapest first, this one among them."""
        return tuple(self.weighed())

    def each(self, change: Callable[[Words], Words]) -> Schedule:
        """With its words changed, and those of its candidates."""

        def changed() -> list[Candidate]:
            return [
                replace(each, directives=change(each.directives))
                for each in self.weighed()
            ]

        return replace(self, directives=change(self.directives), weighed=changed)

    def apply(self, nest: LoopNest) -> LoopNest:
        """The nest with its loops as the schedule makes them.

        Raises Error, with the word as its `where`, at the first one that is not legal.
        """
        require_words(self.directives)
        for directive in self.directives:
            nest = directive.apply(nest)
        return nest

    def __str__(self) -> str:
        """A word a line."""
        return "\n".join(map(str, self.directives))

    def to_transform(self, nest: LoopNest) -> str:
        """The Transform script for a nest, which --schedule takes.

        Raises Error at the first word that is not legal for it.
        """
        from nanoloom.schedule.emit import script

        return script(self, nest)

    @property
    def packings(self) -> tuple[Packing, ...]:
        """How weights are packed for it."""
        return tuple(d for d in self.directives if isinstance(d, Packing))


__all__ = [
    "ALL",
    "FIRST",
    "RESULT",
    "Candidate",
    "ComputeAt",
    "CopyOperand",
    "Directive",
    "Hoist",
    "Nanokernel",
    "Packing",
    "Pad",
    "Parallel",
    "Peel",
    "Pipeline",
    "Prefetch",
    "Reorder",
    "Schedule",
    "Split",
    "SplitReduction",
    "Stationary",
    "StoreApart",
    "StoreAt",
    "Tile",
    "Turn",
    "Unroll",
    "UnrollAndJam",
    "Vectorize",
]
