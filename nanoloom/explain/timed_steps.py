"""A program run again and again, and the time of each of its steps."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nanoloom.runtime.slices import Slices
from nanoloom.runtime.variant import Variant

LEAST_RUNS, SECONDS = 5, 2.0  # of measuring, by default
WATCHED = 100  # runs whose threads are noted: more tell no more of a median
MOST_SLICES = 1 << 20  # of a run, 32 bytes each


@dataclass(frozen=True)
class Timed:
    """nanoseconds: of each step (columns) in each run (rows).  begins: of the runs,
    seconds from the first one.  whole: median seconds of a run, timed from outside.

    slices: what the threads did, as `Slices.rows`, in the first runs of several.
    """

    nanoseconds: np.ndarray
    begins: tuple[float, ...]
    whole: float
    slices: tuple[np.ndarray, ...] = ()


def timed(
    variant: Variant, arrays: Mapping[str, np.ndarray], runs: int | None = None
) -> Timed:
    """runs: by default as many as fit into two seconds, five at least."""
    count = len(variant.library.steps)
    rows: list[np.ndarray] = []
    begins: list[float] = []
    wholes: list[float] = []
    noted: list[np.ndarray] = []
    variant(arrays)  # pages are there, threads are awake
    slices = watched(variant, arrays)
    row, first = np.zeros(count, np.int64), time.perf_counter()
    while len(rows) < (runs or LEAST_RUNS) or (
        runs is None and time.perf_counter() - first < SECONDS
    ):
        variant.instance.slices = slices if len(noted) < WATCHED else None
        began = time.perf_counter()
        variant(arrays, row)  # by position: a keyword would take longer than the times
        wholes.append(time.perf_counter() - began)
        rows.append(row.copy())
        begins.append(began - first)
        if variant.instance.slices is not None and slices is not None:
            noted.append(slices.rows())
    variant.instance.slices = None
    table = np.array(rows).reshape(len(rows), count)
    return Timed(table, tuple(begins), float(np.median(wholes)), tuple(noted))


def watched(variant: Variant, arrays: Mapping[str, np.ndarray]) -> Slices | None:
    """Room for what the threads do in a run; None where there is one, or too much."""
    if variant.instance.threads < 2:
        return None
    variant.instance.slices = asked = Slices(0)
    variant(arrays, np.zeros(len(variant.library.steps), np.int64))
    # Who takes which tasks differs from run to run.
    return Slices(2 * asked.count) if asked.count <= MOST_SLICES // 2 else None
