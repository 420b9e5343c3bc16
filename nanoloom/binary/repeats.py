"""Steps that run several times in a row: what repeats.h describes in C."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.binary.sizes import NONE
from nanoloom.sizes.bounds import Bounds


@dataclass(frozen=True)
class Move:
    """An operand of a step that lies elsewhere in each trip: struct nanoloom_move.

    step: its number in the program; operand: which of its buffers.  stride: bytes from
    one trip to the next; if it alternates, forth behind even trips and back behind odd.
    word: of the program's sizes, which the stride is times; NONE for none.
    """

    step: int
    operand: int
    stride: int
    alternates: bool = False
    word: int = NONE

    def farthest(self, trips: int) -> int:
        """Bytes from the first trip's place to the one farthest from it."""
        return self.stride * (min(trips, 2) - 1 if self.alternates else trips - 1)


@dataclass(frozen=True)
class Repeat:
    """The steps first ... first + count - 1, `trips` times: struct nanoloom_repeat.

    word: which of the program's sizes the trips are; NONE for a number.  beside: it may
    run at the same time as the repeat in front of it, behind whose steps its own stand.
    points: of all loops in a trip, or the word with them; 0 where nobody knows.
    within: a word, and what it must be for the steps to run at all.
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

    def __post_init__(self) -> None:
        if self.trips < 1 or self.count < 1 or self.first < 0:
            raise ValueError(f"{self} repeats nothing")

    @property
    def end(self) -> int:
        """The number of the step behind it."""
        return self.first + self.count
