"""The words of a schedule: each is a value, and a schedule is a tuple of them.

A schedule prints, hashes and compares; `emit.py` alone makes a Transform script of it.
A stage is named as its nest names it (nest/stage.py); sizes are per axis of that
stage, 0 for an axis left whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from nanoloom.nest.extent import Lanes
from nanoloom.schedule.packing import Packing

ALL = ("all",)  # of the stages in front of one
RESULT = "result"  # the stage that StoreApart makes


@dataclass(frozen=True)
class Parallel:
    """for i in 0..n: f(i)  ->  forall io in 0..n/size: for ii in 0..size: f(io*size+ii)

    The forall's iterations are the kernel's tasks.  fuse: producers are computed inside
    (ALL, or these stages).  slowest: the axis that changes most rarely from task to
    task, so that what depends on it only stays in the cache.
    """

    stage: str
    sizes: tuple[int, ...]
    fuse: tuple[str, ...] = ()
    slowest: int | None = None


@dataclass(frozen=True)
class Tile:
    """for i in 0..n: f(i)  ->  for io in 0..n/size: for ii in 0..size: f(io*size+ii)

    Inside the loops made before; fuse: the producers to compute inside.
    """

    stage: str
    sizes: tuple[int, ...]
    fuse: tuple[str, ...] = ()


@dataclass(frozen=True)
class Split:
    """for k in 0..n: f(k)  ->  for k in 0..at: f(k); for k in at..n: f(k)

    Both parts keep the stage's name; STAGE.first is the first one alone.
    """

    stage: str
    axis: int
    at: int


@dataclass(frozen=True)
class StoreApart:
    """result[i] += f(i)  ->  sums[i] += f(i); result[i] = sums[i]

    The sums lie in a buffer of their own until they are complete; what writes the
    result is a stage of its own, `result`.
    """

    stage: str


@dataclass(frozen=True)
class Nanokernel:
    """The innermost tile as one nanokernel: accumulators stay in registers.

    family: of the instructions (see vector/nanokernel/).
    rows x vectors: the register tile.  packed: the right operand comes as panels
    (Packing), made while compiling.
    depth: of a matrix unit, so much of the last reduced axis is summed for all of
    a task's rows before the next part of it; 0 for all at once.
    copied: a right operand that is not packed is copied to a panel by every task.
    swapped: all rows' numbers are held and the columns loaded one by one, not the other
    way around (see register_tile.py).
    """

    rows: int
    vectors: int
    packed: bool
    family: str = "fma"
    stage: str = "product"
    depth: int = 0
    copied: bool = False
    swapped: bool = False


@dataclass(frozen=True)
class Vectorize:
    """for i in 0..n: f(i)  ->  for io in 0..n/lanes: f(io*lanes .. io*lanes + lanes-1)

    What does not fill a vector runs under a mask.  axis: of the stage.  chains: of a
    reduced axis, so many vectors of sums side by side, combined at its end.
    """

    stage: str
    axis: int
    lanes: Lanes
    chains: int = 1


@dataclass(frozen=True)
class Unroll:
    """for k in 0..n: f(k)  ->  for ko in 0..n/count: f(ko*count); ...; f(ko*count +
    count-1)

    Steps of an axis that a stage's loops have inside its vectors: of a sum.  count: 0
    for all of them.
    """

    stage: str
    axis: int
    count: int = 0


@dataclass(frozen=True)
class UnrollAndJam:
    """for i in 0..n: for k: f(i, k)  ->  for io in 0..n/count: for k: f(io*count, k);
    ...; f(io*count + count-1, k)

    The loops further in run once for `count` points of an axis, whose results are in
    registers together; of the axis that vectors run along so many vectors.  Several of
    these words for axes of one stage make a register tile.
    """

    stage: str
    axis: int
    count: int


Directive: TypeAlias = (
    Packing
    | Parallel
    | Tile
    | Split
    | StoreApart
    | Nanokernel
    | Vectorize
    | Unroll
    | UnrollAndJam
)


@dataclass(frozen=True)
class Schedule:
    """How one kernel is made.  reason: why, in words, for people: no part of what a
    schedule is."""

    directives: tuple[Directive, ...]
    reason: str = field(default="", compare=False)

    def __str__(self) -> str:
        return " . ".join(map(str, self.directives))

    @property
    def packings(self) -> tuple[Packing, ...]:
        """How weights are packed for it."""
        return tuple(d for d in self.directives if isinstance(d, Packing))
