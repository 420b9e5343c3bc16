"""The ways to score a table as Ray's actors: all under the same engine."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray  # pyright: ignore[reportMissingImports] - an extra

from benchmarks.scoring import WAYS, Turns, scoring_by, table_of
from nanoloom.ray import TABLE_ROWS, Scorer


class Actor:
    """All ways in one process, on a CPU of its own; nanoloom's as `map_batches` has
    it."""

    def __init__(self, cpu: int, model: Path, batch_rows: int) -> None:
        os.sched_setaffinity(0, {cpu})
        self.ways: dict[str, Any] = {w: scoring_by(w, model, batch_rows) for w in WAYS}
        self.ways["nanoloom"] = Scorer(self.ways["nanoloom"])

    def score(self, way: str, table: pa.Table) -> Any:
        return self.ways[way](table)


class Actors(Turns):
    """Two of them.  Each has the tables of its own rows, in Ray's memory."""

    def __init__(self, model: Path, rows: int, batch_rows: int) -> None:
        cpus = sorted(os.sched_getaffinity(0))
        actor: Any = ray.remote(num_cpus=1)(Actor)
        self.actors = [
            actor.remote(cpus[i % len(cpus)], model, batch_rows) for i in range(2)
        ]
        table = table_of(rows)
        self.tables = [
            ray.put(table.slice(begin, TABLE_ROWS).combine_chunks())
            for begin in range(0, rows, TABLE_ROWS)
        ]
        for way in WAYS:
            self.seconds(way, 2)

    def seconds(self, way: str, count: int) -> float:
        begun = time.perf_counter()
        made = [
            actor.score.remote(way, table)
            for actor in self.actors[:count]
            for table in self.tables
        ]
        ray.wait(made, num_returns=len(made), fetch_local=False)
        taken = time.perf_counter() - begun
        for each in made:
            ray.get(each)  # what one raises
        return taken


@contextmanager
def actors(words: tuple[Path, int, int]) -> Generator[Actors]:
    """On a cluster that ends with them."""
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    try:
        yield Actors(*words)
    finally:
        ray.shutdown()
