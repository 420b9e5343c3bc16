"""The calls of a program: buffers and where they live, and calls that are repeated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from nanoloom.interface.bounds import Bounds
from nanoloom.memory.memory_plan import rounded

NONE = -1  # in the place of the number of a word of the sizes


class Storage(Enum):
    """Where a buffer of the program lives."""

    ARENA = "arena"
    PARAMETER = "parameter"
    INPUT = "input"
    OUTPUT = "output"
    SIZES = "sizes"


@dataclass(frozen=True)
class State:
    """Which of its two places a repeat's state lies in, one behind the other.

    bytes: of the state.  trips: behind so many it lies there: in the first place where
    the number is even.  moves: in the other one in the next trip.  words: which of the
    program's sizes bytes and trips are; () for numbers.
    """

    bytes: int
    trips: int
    moves: bool = True
    words: tuple[int, ...] = ()

    @property
    def begin(self) -> int:
        """Bytes to the place."""
        return rounded(self.bytes) * (self.trips % 2)

    @property
    def stride(self) -> int:
        """Bytes from there to the other one."""
        return rounded(self.bytes) - 2 * self.begin


@dataclass(frozen=True)
class Place:
    """One buffer: which input, output or parameter, which arena buffer or size.

    offset: bytes from its beginning to where a kernel's argument begins; in a repeat,
    in its first trip, and `stride` bytes further in each other one.  word, stride_word:
    of the program's sizes, so many bytes more, and what the stride is times; NONE for
    none.  state: of a buffer with two places, which of them.
    """

    storage: Storage
    index: int
    offset: int = 0
    stride: int = 0
    word: int = NONE
    stride_word: int = NONE
    state: State | None = None

    @property
    def begin(self) -> int:
        """The offset in the buffer where no size decides about it."""
        return self.offset + (self.state.begin if self.state else 0)


@dataclass(frozen=True)
class Call:
    """One kernel at work: arguments in order, the results last.

    layer: the node that it is named for; nodes: all whose operations are in it.
    shapes: of the arguments where they are not the kernel's own, which is one of
    several depths (share_across_k.py).
    """

    kernel: str
    arguments: tuple[Place, ...]
    layer: str
    shapes: tuple[tuple[int, ...], ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Until:
    """What a repeat looks at while it runs, of which only a run knows the trips.

    limit: int64, how many trips there are at most, read in front of the first one.
    flag: bool, read in front of each: whether it runs.  states: brought to their first
    place behind all trips, as nobody knows in which of the two the last one lies.
    """

    limit: Place | None
    flag: Place | None
    states: tuple[Place, ...]

    @property
    def places(self) -> tuple[Place, ...]:
        read = (x for x in (self.limit, self.flag) if x is not None)
        return (*read, *self.states)

    def changed(self, change: Callable[[Place], Place]) -> Until:
        """The same, looking elsewhere."""
        given = self.limit, self.flag
        limit, flag = (None if x is None else change(x) for x in given)
        return Until(limit, flag, tuple(map(change, self.states)))


@dataclass(frozen=True)
class Repeated:
    """The calls first ... first + count - 1 run `trips` times in a row.

    word: which of the program's sizes the trips are; NONE for a number.  beside: they
    may run at the same time as the repeat whose calls end where these begin.  points:
    of all loops of one trip, or the word with them; 0 where nobody knows.  within: a
    word, and what it must be for them to run at all.  until: where they may be fewer.
    """

    first: int
    count: int
    trips: int
    word: int = NONE
    beside: bool = False
    points: int = 0
    points_word: int = NONE
    within: tuple[int, Bounds] | None = None
    until: Until | None = None

    def __contains__(self, call: int) -> bool:
        return self.first <= call < self.first + self.count
