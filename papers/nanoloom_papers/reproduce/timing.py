"""Times taken in turns, in bursts: threads awake, caches warm, nobody else spinning."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nanoloom.inspect.timing import Times
from nanoloom_papers.reproduce.contenders import Remote


@dataclass(frozen=True)
class Pace:
    """How long is measured.

    rounds: turns of each contender.  pause: seconds before a turn, longer than the
    threads of any library spin (OpenBLAS: 2^26 ticks, 0.03 s).  burst: seconds of calls
    in a turn.  most: calls in a turn.  longest: seconds of a contender in all turns; a
    slow one, as bf16 without instructions for it, has fewer of them, and one whose
    first call takes longer has that call alone.
    """

    rounds: int = 7
    pause: float = 0.05
    burst: float = 0.03
    most: int = 200
    longest: float = 5.0

    def calls(self, seconds: float) -> int:
        """How many calls of so many seconds a burst has room for."""
        return max(1, min(self.most, math.ceil(self.burst / max(seconds, 1e-9))))

    def turns(self, seconds: float) -> int:
        """How many turns a contender has whose calls take so long."""
        return max(1, min(self.rounds, int(self.longest / max(seconds, 1e-9))))


QUICK = Pace(rounds=2, pause=0.0, burst=0.0, most=1)


def interleaved(
    contenders: Sequence[Remote],
    pace: Pace,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Times]:
    """Each contender's times, another one first in every round.

    A call much shorter than a burst has one before it that is not counted: its threads
    are woken and its data is fetched there, as in a loop of a program.
    """
    firsts = [
        each.took if each.took > pace.longest else min(each.time(1, 0))
        for each in contenders
    ]
    found = [[first] if first > pace.longest else [] for first in firsts]
    lengths = [
        first if times else min(first, *each.time(1, 0))
        for each, first, times in zip(contenders, firsts, found, strict=True)
    ]
    turns = [
        0 if times else pace.turns(length)
        for length, times in zip(lengths, found, strict=True)
    ]
    for number in range(pace.rounds):
        for place in range(len(contenders)):
            index = (place + number) % len(contenders)
            if number >= turns[index]:
                continue
            time.sleep(pace.pause)
            calls = pace.calls(lengths[index])
            found[index] += contenders[index].time(calls, 1 if calls > 1 else 0)
        progress(number + 1, pace.rounds)
    return [Times(tuple(seconds)) for seconds in found]
