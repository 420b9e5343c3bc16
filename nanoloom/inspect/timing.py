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
    """Each run's times.  In every repetition another one is first."""
    found: list[list[float]] = [[] for _ in runs]
    rounds = [sum(timed(run) for run in runs) for _ in range(WARM_UPS)]
    count = repetitions or fitting(rounds[-1])
    for repetition in range(count):
        for place in range(len(runs)):
            index = (place + repetition) % len(runs)
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
