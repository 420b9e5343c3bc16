"""The words of a schedule: each is a value, and a schedule is a tuple of them.

A schedule prints, hashes and compares; `apply` makes the loops of a nest that it means,
and `emit.py` alone makes a Transform script of those.  A stage and its axes are named
as its nest names them (nest/statement.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from nanoloom.nest.nest import LoopNest
from nanoloom.schedule.directives.compute_at import ComputeAt
from nanoloom.schedule.directives.copies import CopyOperand, Hoist
from nanoloom.schedule.directives.directive import require_directives
from nanoloom.schedule.directives.instruction import Instruction
from nanoloom.schedule.directives.kernel import Stack, VectorizeRest
from nanoloom.schedule.directives.loops import (
    Reorder,
    Split,
    Unroll,
    UnrollAndJam,
    Vectorize,
)
from nanoloom.schedule.directives.nanokernel import Nanokernel
from nanoloom.schedule.directives.pad import Pad
from nanoloom.schedule.directives.pipeline import Pipeline
from nanoloom.schedule.directives.prefetch import Prefetch
from nanoloom.schedule.directives.reductions import (
    FIRST,
    RESULT,
    Peel,
    PrivateAccumulator,
    SplitReduction,
)
from nanoloom.schedule.directives.scalarize import Scalarize
from nanoloom.schedule.directives.stationary import Stationary
from nanoloom.schedule.directives.store_at import StoreAt
from nanoloom.schedule.directives.sums import (
    InitWithAddend,
    ReduceJointly,
    ReuseWindow,
)
from nanoloom.schedule.directives.tails import Balance, Tail, Versions
from nanoloom.schedule.directives.tiles import ALL, Parallel, Tile
from nanoloom.schedule.directives.transpose_in_registers import TransposeInRegisters
from nanoloom.schedule.packing import Pack

Directive: TypeAlias = (
    Pack
    | Prefetch
    | Parallel
    | Tile
    | ComputeAt
    | Split
    | Reorder
    | Peel
    | SplitReduction
    | PrivateAccumulator
    | StoreAt
    | Nanokernel
    | Vectorize
    | Unroll
    | UnrollAndJam
    | Pipeline
    | CopyOperand
    | Pad
    | Hoist
    | TransposeInRegisters
    | Stationary
    | Versions
    | Balance
    | Tail
    | ReduceJointly
    | ReuseWindow
    | InitWithAddend
    | Instruction
    | Scalarize
    | Stack
    | VectorizeRest
)


Directives: TypeAlias = tuple[Directive, ...]


@dataclass(frozen=True)
class Candidate:
    """What else a kernel could have been made by, and what was predicted of it.

    cost: cycles for the least work that there is, 1 at best.
    """

    directives: tuple[Directive, ...]
    reason: str
    cost: float


def no_candidates() -> Sequence[Candidate]:
    """Nothing was weighed."""
    return ()


@dataclass(frozen=True)
class Schedule:
    """How one kernel is made.

    reason: why, in words, for people; make_candidates: makes all that were weighed, the
    cheapest first, this one among them: most kernels are compiled without a look at
    them.  Both are no part of what a schedule is.
    """

    directives: tuple[Directive, ...]
    reason: str = field(default="", compare=False)
    make_candidates: Callable[[], Sequence[Candidate]] = field(
        default=no_candidates, compare=False, repr=False
    )

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All that were weighed, the cheapest first, this one among them."""
        return tuple(self.make_candidates())

    def each(self, change: Callable[[Directives], Directives]) -> Schedule:
        """With its words changed, and those of its candidates."""

        def changed() -> list[Candidate]:
            return [
                replace(each, directives=change(each.directives))
                for each in self.make_candidates()
            ]

        return replace(
            self, directives=change(self.directives), make_candidates=changed
        )

    def apply(self, nest: LoopNest) -> LoopNest:
        """The nest with its loops as the schedule makes them.

        Raises Error, with the word as its `where`, at the first one that is not legal.
        """
        require_directives(self.directives)
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
    def packings(self) -> tuple[Pack, ...]:
        """How weights are packed for it."""
        return tuple(d for d in self.directives if isinstance(d, Pack))


# Directives that had other names.
RETIRED = {
    "Packing": "Pack",
    "StoreApart": "PrivateAccumulator",
    "Turn": "TransposeInRegisters",
}


def __getattr__(name: str) -> object:
    """Whoever asks for a retired name learns the new one."""
    if name in RETIRED:
        raise ImportError(f"{name} is called {RETIRED[name]} now")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ALL",
    "FIRST",
    "RESULT",
    "Balance",
    "Candidate",
    "ComputeAt",
    "CopyOperand",
    "Directive",
    "Hoist",
    "InitWithAddend",
    "Instruction",
    "Nanokernel",
    "Pack",
    "Pad",
    "Parallel",
    "Peel",
    "Pipeline",
    "Prefetch",
    "ReduceJointly",
    "Reorder",
    "ReuseWindow",
    "Scalarize",
    "Schedule",
    "Split",
    "SplitReduction",
    "Stack",
    "Stationary",
    "PrivateAccumulator",
    "StoreAt",
    "Tail",
    "Tile",
    "TransposeInRegisters",
    "Unroll",
    "UnrollAndJam",
    "Vectorize",
    "VectorizeRest",
    "Versions",
]
