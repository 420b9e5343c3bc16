"""A program's repeats, of calls, as those of its table, of steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from nanoloom.binary.repeats import Move, Repeat
from nanoloom.interface.tensor import NONE
from nanoloom.kernels.program import Program
from nanoloom.memory.calls import Place, Repeated


def repeats_of(
    program: Program, begins: Sequence[int], shares: Collection[str]
) -> tuple[tuple[Repeat, ...], list[Place]]:
    """The program's repeats, of steps, and where lies what they read.

    begins: the first step of each call.  shares: kernels with tensors of their own,
    which run one at a time, as these lie in one place.
    """
    made: list[Repeat] = []
    read: list[Place] = []
    for repeat in program.repeats:
        first, end = begins[repeat.first], begins[repeat.first + repeat.count]
        calls = range(repeat.first, repeat.first + repeat.count)
        moves = [
            move_of(place, step, operand)
            for call in calls
            for step in range(begins[call], begins[call + 1])
            for operand, place in enumerate(program.calls[call].arguments)
            if is_moved(place)
        ]
        if end == first:
            continue
        together = not any(program.calls[call].kernel in shares for call in calls)
        beside = repeat.beside and bool(made) and made[-1].end == first and together
        rest = repeat.points, repeat.points_word, repeat.within
        limit, flag = read_by(repeat, read, moves)
        made.append(
            Repeat(
                first, end - first, repeat.trips, tuple(moves), repeat.word, beside,
                *rest, limit, flag,
            )
        )  # fmt: skip
    return tuple(made), read


def read_by(repeat: Repeated, read: list[Place], moves: list[Move]) -> tuple[int, int]:
    """Which of `read` are the limit and the flag of a repeat.

    Added to `read` and `moves`: what it reads and what settles behind it.
    """
    if repeat.until is None:
        return NONE, NONE
    numbers: list[int] = []
    for place in (repeat.until.limit, repeat.until.flag):
        numbers.append(NONE if place is None else len(read))
        if place is not None:
            if is_moved(place):
                moves.append(move_of(place, NONE, len(read)))
            read.append(place)
    for place in repeat.until.states:
        moves.append(move_of(place, NONE, len(read), settles=True))
        read.append(place)
    return numbers[0], numbers[1]


def is_moved(place: Place) -> bool:
    """Whether it is elsewhere in the next trip."""
    return bool(place.stride or (place.state and place.state.moves))


def move_of(place: Place, step: int, operand: int, *, settles: bool = False) -> Move:
    """How an operand moves from trip to trip, or settles behind them."""
    state = place.state
    if state is None or not state.moves:
        return Move(step, operand, place.stride, word=place.stride_word)
    how = not settles, settles
    if not state.words:
        return Move(step, operand, state.stride, how[0], settles=how[1])
    stride = -1 if state.trips % 2 else 1
    return Move(step, operand, stride, how[0], state.words[0], settles=how[1])
