"""Datasets of Ray scored by a model: `Scorer` is an actor for `map_batches`."""

from __future__ import annotations

from typing import Any

import ray  # pyright: ignore[reportMissingImports]

from nanoloom import scoring
from nanoloom.errors import InputError
from nanoloom.runtime.threads import assigned_threads

# Rows of a table that an actor is given: many batches, so that Ray's work for a table
# is little beside them.
TABLE_ROWS = 4096


class Scorer:
    """An actor: tables of Arrow in and out, in the memory where Ray has them.

    dataset.map_batches(Scorer, fn_constructor_args=(scorer,), batch_format="pyarrow",
    batch_size=4096, num_cpus=2, concurrency=8)

    scorer: a `nanoloom.scoring.Scorer`.  It runs on as many threads as Ray has assigned
    CPUs to the actor, whatever OMP_NUM_THREADS says.  Ray starts an actor again that
    was killed, and gives its table to another.
    """

    def __init__(self, scorer: scoring.Scorer) -> None:
        self.scorer = scorer.on_threads(scorer.threads or assigned_threads(cpus()))

    def __call__(self, table: Any) -> Any:
        return self.scorer(table)


def score(
    dataset: Any,
    scorer: scoring.Scorer,
    *,
    workers: int,
    num_cpus: float = 1,
    table_rows: int = TABLE_ROWS,
) -> Any:
    """The dataset of the results, not computed yet: `map_batches` with such actors.

    workers: actors.  num_cpus: of each.  Raises InputError for fewer than one.
    """
    if workers < 1 or num_cpus <= 0:
        reason = f"{workers} workers with {num_cpus} CPUs each score nothing"
        raise InputError(reason, hint="give at least 1 worker, and some of a CPU")
    return dataset.map_batches(
        Scorer,
        fn_constructor_args=(scorer,),
        batch_format="pyarrow",
        batch_size=table_rows,
        num_cpus=num_cpus,
        concurrency=workers,
    )


def cpus() -> float | None:
    """The CPUs that Ray has assigned to this actor; None outside of one."""
    if not ray.is_initialized():
        return None
    return ray.get_runtime_context().get_assigned_resources().get("CPU")
