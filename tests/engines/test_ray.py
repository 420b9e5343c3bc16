"""Ray's own local cluster: two actors, one of them killed in the middle."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import ray

from nanoloom import scoring
from nanoloom.errors import InputError
from nanoloom.ray import Scorer, score
from tests.scoring import models

ROWS, TABLE = 4000, 100


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def sorted_by_id(table: pa.Table) -> pa.Table:
    return table.sort_by("id").combine_chunks()


def result_of(dataset: Any) -> pa.Table:
    tables = [ray.get(ref) for ref in dataset.to_arrow_refs()]
    return sorted_by_id(pa.concat_tables(tables))


@pytest.mark.parametrize("num_cpus", [1, 0.5])
def test_two_workers_give_the_bits_of_one_process(mlp: Path, num_cpus: float) -> None:
    scorer = scoring.Scorer(mlp, keep=["id"], reproducible=True)
    given = models.table(ROWS)
    dataset = ray.data.from_arrow(given).repartition(8)
    made = result_of(
        score(dataset, scorer, workers=2, num_cpus=num_cpus, table_rows=TABLE)
    )
    expected = scorer(given)
    assert made["id"].equals(expected["id"])
    np.testing.assert_array_equal(
        models.numbers(made["y"]), models.numbers(expected["y"])
    )


class Dying(Scorer):
    """The first actor that has scored three tables kills its own process.

    mark: a file that says so; log: a folder with a file for each process.
    """

    def __init__(self, scorer: scoring.Scorer, mark: str, log: str) -> None:
        super().__init__(scorer)
        self.mark, self.count = Path(mark), 0
        (Path(log) / f"{os.getpid()} {self.scorer.workers}").touch()

    def __call__(self, table: pa.Table) -> pa.Table:
        self.count += 1
        if self.count == 3:
            try:
                self.mark.touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(table)


def test_one_is_killed_in_the_middle(mlp: Path, tmp_path: Path) -> None:
    """Nothing is lost, nothing comes twice, and OMP_NUM_THREADS misleads nobody."""
    scorer = scoring.Scorer(mlp, keep=["id"], reproducible=True)
    given = models.table(ROWS, seed=1)
    log = tmp_path / "log"
    log.mkdir()
    dataset = ray.data.from_arrow(given).repartition(20)
    dataset = dataset.map_batches(
        Dying,
        fn_constructor_args=(scorer, str(tmp_path / "mark"), str(log)),
        batch_format="pyarrow",
        batch_size=TABLE,
        num_cpus=1,
        concurrency=2,
    )
    made = result_of(dataset)
    assert (tmp_path / "mark").exists()
    workers = [path.name.split() for path in log.iterdir()]
    assert len(workers) >= 3 and {threads for _, threads in workers} == {"1"}
    assert made["id"].to_pylist() == list(range(ROWS))
    np.testing.assert_array_equal(
        models.numbers(made["y"]), models.numbers(scorer(given)["y"])
    )


def test_an_actor_has_the_cpus_that_ray_assigned(mlp: Path) -> None:
    scorer = scoring.Scorer(mlp)

    @ray.remote
    def threads() -> tuple[int, str | None]:
        return Scorer(scorer).scorer.workers, os.environ.get("OMP_NUM_THREADS")

    for cpus in (1, 2):
        found, _ = ray.get(threads.options(num_cpus=cpus).remote())
        assert found == min(cpus, len(os.sched_getaffinity(0)))


def test_no_workers_are_refused(mlp: Path) -> None:
    with pytest.raises(InputError, match="0 workers"):
        score(None, scoring.Scorer(mlp), workers=0)
