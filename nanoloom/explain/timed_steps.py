"""A program run again and again, and the time of each of its steps."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nanoloom.runtime.variant import Variant

LEAST_RUNS, SECONDS = 5, 2.0  # of measuring, by default


@dataclass(frozen=True)
class Timed:
    """nanoseconds: of each step (columns) in each run (rows).  begins: of the runs,
    seconds from the first one.  whole: median seconds of a run, timed from outside."""

    nanoseconds: np.ndarray
    begins: tuple[float, ...]
    whole: float


def timed(
    variant: Variant, arrays: Mapping[str, np.ndarray], runs: int | None = None
) -> Timed:
    """runs: by default as many as fit into two seconds, five at least."""
    count = len(variant.library.steps)
    rows: list[np.ndarray] = []
    begins: list[float] = []
    wholes: list[float] = []
    variant(arrays)  # pages are there, threads are awake
    row, first = np.zeros(count, np.int64), time.perf_counter()
    while len(rows) < (runs or LEAST_RUNS) or (
        runs is None and time.perf_counter() - first < SECONDS
    ):
        began = time.perf_counter()
        variant(arrays, row)  # by position: a keyword would take longer than the times
        wholes.append(time.perf_counter() - began)
        rows.append(row.copy())
        begins.append(began - first)
    table = np.array(rows).reshape(len(rows), count)
    return Timed(table, tuple(begins), float(np.median(wholes)))
