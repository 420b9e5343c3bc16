"""Measuring callables beside each other: interleaved, medians, after a warm-up."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def interleaved(
    calls: Mapping[str, Callable[[], object]], repetitions: int, warm_ups: int = 3
) -> dict[str, float]:
    """The median seconds of each call, called in turn so that they see one machine."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for repetition in range(warm_ups + repetitions):
        for name, call in calls.items():
            started = time.perf_counter()
            call()
            if repetition >= warm_ups:
                seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(times) for name, times in seconds.items()}
