"""The words of a schedule: each is a value, and a schedule is a tuple of them.

A schedule prints, hashes and compares; `emit.py` alone makes a Transform script of it.
Sizes are per dimension of the kernel's last operation, 0 for a dimension left whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.schedule.packing import Packing


@dataclass(frozen=True)
class Parallel:
    """for i in 0..n: f(i)  ->  forall io in 0..n/size: for ii in 0..size: f(io*size+ii)

    The forall's iterations are the kernel's tasks.  fuse: producers are computed inside
    ("all", or the operations of these marks).  slowest: the dimension that changes most
    rarely from task to task, so that what depends on it only stays in the cache.
    """

    sizes: tuple[int, ...]
    fuse: tuple[str, ...] = ()
    slowest: int | None = None


@dataclass(frozen=True)
class Tile:
    """for i in 0..n: f(i)  ->  for io in 0..n/size: for ii in 0..size: f(io*size+ii)

    Inside the loops made before; fuse: marks of the producers to compute inside.
    mark: of the operation whose loops these are.
    """

    sizes: tuple[int, ...]
    fuse: tuple[str, ...] = ()
    mark: str = "last"


@dataclass(frozen=True)
class Split:
    """for k in 0..n: f(k)  ->  for k in 0..at: f(k); for k in at..n: f(k)

    mark: of the operation, and of both parts; the first one has the mark `first`, too.
    """

    dimension: int
    at: int
    mark: str = "root"


@dataclass(frozen=True)
class Nanokernel:
    """The innermost tile as one nanokernel: accumulators stay in registers.

    family: of the instructions (see vector/nanokernel/).
    rows x vectors: the register tile.  packed: the right operand comes as panels
    [n/columns][k...][columns], made while compiling.  mark: of the contraction.
    depth: of a matrix unit, so much of the last reduced dimension is summed for all of
    a task's rows before the next part of it; 0 for all at once.
    copied: a right operand that is not packed is copied to a panel by every task.
    swapped: all rows' numbers are held and the columns loaded one by one, not the other
    way around (see register_tile.py).
    """

    rows: int
    vectors: int
    packed: bool
    family: str = "fma"
    mark: str = "root"
    depth: int = 0
    copied: bool = False
    swapped: bool = False


@dataclass(frozen=True)
class Loops:
    """Whatever is left becomes vector loops (see vector/loops.py)."""


Directive = Parallel | Tile | Split | Nanokernel | Loops


@dataclass(frozen=True)
class Schedule:
    """How one kernel is made.  reason: why, in words, for people."""

    directives: tuple[Directive, ...]
    reason: str = ""

    def __str__(self) -> str:
        return " . ".join(map(str, self.directives))


@dataclass(frozen=True)
class Choice:
    """A kernel's schedule, and how its weights are packed for it."""

    schedule: Schedule
    packings: tuple[Packing, ...] = ()
