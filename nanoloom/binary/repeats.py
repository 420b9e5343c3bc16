"""Steps that run several times in a row: what repeats.h describes in C."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.interface.bounds import Bounds
from nanoloom.interface.tensor import NONE


@dataclass(frozen=True)
class Move:
    """An operand of a step that lies elsewhere in each trip: struct nanoloom_move.

    step: its number in the program; operand: which of its buffers.  stride: bytes from
    one trip to the next; if it alternates, forth behind even trips and back behind odd.
    settles: what has alternated so is brought to the first of both places behind all
    trips.  word: of the program's sizes, which the stride is times; NONE for none.
    step is NONE for what repeats read: operand is its number among those.
    """

    step: int
    operand: int
    stride: int
    alternates: bool = False
    word: int = NONE
    settles: bool = False

    @property
    def way(self) -> int:
        """An enum nanoloom_way."""
        return 2 if self.settles else int(self.alternates)

    def farthest(self, trips: int) -> int:
        """Bytes from the first trip's place to the one farthest from it."""
        return self.stride * (min(trips, 2) - 1 if self.way else trips - 1)


@dataclass(frozen=True)
class Repeat:
    """The steps first ... first + count - 1, `trips` times: struct nanoloom_repeat.

    word: which of the program's sizes the trips are; NONE for a number.  beside: it may
    run at the same time as the repeat in front of it, behind whose steps its own stand.
    points: of all loops in a trip, or the word with them; 0 where nobody knows.
    within: a word, and what it must be for the steps to run at all.  limit, flag: which
    of the program's read buffers (ProgramTable) say how many trips there are at most,
    int64, and in front of each whether it runs, a byte; NONE for none.
    """

    first: int
    count: int
    trips: int
    moves: tuple[Move, ...] = ()
    word: int = NONE
    beside: bool = False
    points: int = 0
    points_word: int = NONE
    within: tuple[int, Bounds] | None = None
    limit: int = NONE
    flag: int = NONE

    def __post_init__(self) -> None:
        if self.trips < 1 or self.count < 1 or self.first < 0:
            raise ValueError(f"{self} repeats nothing")

    @property
    def end(self) -> int:
        """The number of the step behind it."""
        return self.first + self.count
