"""PyTorch's own runs of an exported module: eager, and compiled by Inductor."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.zoo.entry import Exported, Run

SPINNING = 0.02  # seconds: for so long threads of OpenMP may wait for more work, awake


def in_turns(runs: Sequence[Run], repetitions: int) -> list[float]:
    """The medians of their times, each where threads of the others are asleep.

    A run that is timed follows runs of its own: after a pause instead, threads of its
    own were asleep as well.
    """
    found: list[list[float]] = [[] for _ in runs]
    for _ in range(repetitions):
        for run, seconds in zip(runs, found, strict=True):
            start = time.perf_counter()
            run()
            while time.perf_counter() - start < SPINNING:
                run()
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
    return list(map(statistics.median, found))


def eager(found: Exported, threads: int) -> Run:
    """Warm: what a first call does is done."""
    import torch

    torch.set_num_threads(threads)
    return warm(found.module, found.tensors)


def inductor(found: Exported, threads: int) -> Run:
    """Compiled as `torch.compile(module)` does it."""
    import torch

    torch.set_num_threads(threads)
    return warm(torch.compile(found.module), found.tensors)


def warm(module: Any, tensors: tuple[Any, ...]) -> Run:
    import torch

    def run() -> object:
        with torch.inference_mode():
            return module(*tensors)

    run()
    return run
