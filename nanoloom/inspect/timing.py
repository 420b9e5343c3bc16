"""Times of several systems, taken in turn so that all see the same machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

WARM_UPS = 3
PAUSE = 0.002  # seconds: threads of the one before stop spinning
BUDGET = 10.0  # seconds for all repetitions, where their number is not given
FEWEST, MOST = 5, 200
LONGEST = 30.0  # seconds of one run in all repetitions; the first is counted beside it
Run = Callable[[], object]


@dataclass(frozen=True)
class Times:
    """Seconds of every repetition."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        return min(self.seconds)


def interleaved(
    runs: Sequence[Run],
    repetitions: int | None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Times]:
    """Each run's times.  In every repetition another one is first.

    A run that takes many seconds, as plain loops do of a whole model, has fewer
    repetitions than others, at least one, and is warm after its first call.
    """
    found: list[list[float]] = [[] for _ in runs]
    lengths = [timed(run) for run in runs]
    for _ in range(WARM_UPS - 1):
        lengths = [
            timed(run) if length * WARM_UPS < LONGEST else length
            for run, length in zip(runs, lengths, strict=True)
        ]
    count = repetitions or fitting(sum(lengths))
    turns = [max(1, min(count, int(LONGEST / max(each, 1e-9)))) for each in lengths]
    for repetition in range(count):
        for place in range(len(runs)):
            index = (place + repetition) % len(runs)
            if len(found[index]) < turns[index]:
                found[index].append(timed(runs[index]))
        progress(repetition + 1, count)
    return [Times(tuple(seconds)) for seconds in found]


def timed(run: Run) -> float:
    time.sleep(PAUSE)
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def fitting(seconds: float) -> int:
    """How many repetitions of a round the budget has room for."""
    return max(FEWEST, min(MOST, round(BUDGET / max(seconds, 1e-9))))
