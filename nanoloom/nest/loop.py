"""The loops of a stage, as a schedule has made them of its axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from nanoloom.nest.extent import Extent, Lanes
from nanoloom.nest.statement import Axis, Statement
from nanoloom.target.tail_forms import MASKED_REMAINDER


class How(Enum):
    """How the steps of a loop are made."""

    SERIAL = "for"  # one behind the other
    PARALLEL = "forall"  # the kernel's tasks
    UNROLLED = "unrolled"  # written out; beside each other, if inside of all sums
    VECTOR = "vector"  # lanes of one instruction


@dataclass(frozen=True)
class Loop:
    """Steps along an axis of a stage.

    trips: how many there are at most; step: points of the axis in each of them, more
    than one if loops further in go over them.  chains: of a vector of sums, so many
    side by side.  slowest: of a kernel's tasks, what changes most rarely.  ahead:
    what the next step reads is loaded while one computes.  padded: the points are a
    multiple of so many, what is behind the end among them.
    form: of the loop over these lanes (target/tail_forms.py).  scalable: a step has as
    many points times vscale.
    """

    name: str
    axis: str
    trips: Extent
    step: int = 1
    how: How = How.SERIAL
    is_reduction: bool = False
    chains: int = 1
    slowest: bool = False
    ahead: bool = False
    padded: int = 0
    form: str = MASKED_REMAINDER
    scalable: bool = False

    @property
    def points(self) -> int | None:
        """Of the axis, in all steps together; None if that is no number."""
        return self.trips * self.step if isinstance(self.trips, int) else None

    def __str__(self) -> str:
        by = f" by {Lanes(self.step, self.scalable)}" if self.step > 1 else ""
        words = [self.axis] if self.name != self.axis else []
        words += ["sum"] if self.is_reduction else []
        words += [f"{self.chains} chains"] if self.chains > 1 else []
        words += [self.form] if self.form != MASKED_REMAINDER else []
        words += ["slowest"] if self.slowest else []
        words += [f"padded to {self.padded}s"] if self.padded else []
        words += ["loaded a round ahead"] if self.ahead else []
        why = f" ({', '.join(words)})" if words else ""
        return f"{self.how.value} {self.name} in 0..{self.trips}{by}{why}"


@dataclass(frozen=True)
class TileCode:
    """The nanokernel that makes a stage's innermost loops.

    copies_rhs: a task copies the right operand.  converts_lhs: the left one is copied
    in a wider type.
    """

    family: str
    rows: int
    vectors: int
    lanes: Lanes
    packed: bool
    copies_rhs: bool
    converts_lhs: bool

    def __str__(self) -> str:
        return f"{self.family}, {self.rows} rows x {self.vectors} vectors"


@dataclass(frozen=True)
class Placement:
    """Where a stage is computed, and its own loops, outermost first.

    at: inside of which loop of another stage, as (stage, loop); None for none.
    by: the nanokernel that makes the loops below the serial ones, None for none.
    copied: operands, by their numbers, of which it reads a copy, and the vectors that
    these are copied in.  widened: those of them that are copied in the type that they
    are computed in.  hoisted: copies that are made in front of a loop around it, as
    (operand, stage that has the loop, loop).
    stored: where its results lie, "" for where they do without a word.
    block: the innermost loops that `by` makes in an order of its own, () for none.
    """

    stage: str
    loops: tuple[Loop, ...]
    at: tuple[str, str] | None = None
    by: TileCode | None = None
    copied: tuple[tuple[int, Lanes], ...] = ()
    hoisted: tuple[tuple[int, str, str], ...] = ()
    stored: str = ""
    block: tuple[str, ...] = ()
    widened: tuple[int, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(loop.name for loop in self.loops)

    def loop(self, name: str) -> Loop | None:
        return next((loop for loop in self.loops if loop.name == name), None)

    def replaced(self, name: str, by: Iterable[Loop]) -> Placement:
        """The same with other loops in one's place."""
        loops = [
            x for loop in self.loops for x in (by if loop.name == name else [loop])
        ]
        return replace(self, loops=tuple(loops))

    def copying(self, operands: Mapping[int, Lanes]) -> Placement:
        """The same with copies of some operands more."""
        copied = {**dict(self.copied), **operands}
        return replace(self, copied=tuple(sorted(copied.items())))

    def fresh(self, name: str) -> str:
        """A name for one more loop: this one, or with a number."""
        count, found = 2, name
        while found in self.names:
            found, count = f"{name}{count}", count + 1
        return found


def plain(stage: Statement, sizes: dict[str, Extent] | None = None) -> Placement:
    """A loop for every axis, in order.  sizes: extents of some that are less."""
    return Placement(stage.name, tuple(loop_of(a, sizes or {}) for a in stage.axes))


def loop_of(axis: Axis, sizes: dict[str, Extent]) -> Loop:
    trips = sizes.get(axis.name, axis.extent)
    return Loop(axis.name, axis.name, trips, is_reduction=axis.is_reduction)


def halves(loop: Loop, size: int, outer: str, inner: str) -> tuple[Loop, Loop]:
    """for i in 0..n  ->  for outer in 0..n/size by size: for inner in 0..size"""
    assert isinstance(loop.trips, int)
    blocks = replace(
        loop, name=outer, trips=-(-loop.trips // size), step=size * loop.step
    )
    inner_trips = min(size, loop.trips)
    points = replace(loop, name=inner, trips=inner_trips, ahead=False, padded=0)
    return blocks, points


def lanes_of(loop: Loop, lanes: Lanes, chains: int, outer: str) -> tuple[Loop, Loop]:
    """for i in 0..n  ->  for i in 0..n/lanes by lanes: vector iv in 0..lanes"""
    width = lanes.count * chains
    inner = replace(
        loop,
        name=outer,
        trips=lanes,
        how=How.VECTOR,
        chains=chains,
        ahead=False,
        padded=0,
    )
    if not isinstance(loop.trips, int):
        return loop, inner
    steps = replace(loop, trips=-(-loop.trips // width), step=width * loop.step)
    return replace(steps, scalable=lanes.scalable), inner
