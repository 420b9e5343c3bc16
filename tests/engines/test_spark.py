"""Functions for Spark: on plain iterators, and in its own local cluster, of whose two
workers one is killed in the middle."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from nanoloom import scoring
from nanoloom.spark import map_in_arrow, map_in_pandas, schema
from tests.scoring import models

ROWS, PARTS = 500, 8
NAMES = [f"f{i}" for i in range(50)]
Form = Callable[[scoring.Scorer], Any]
CLUSTER = "local-cluster[2,1,512]"  # two workers of one CPU, each a process of Java


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master(CLUSTER)
        builder = builder.config("spark.executor.memory", "512m")
        session = builder.config("spark.ui.enabled", "false").getOrCreate()
        yield session
        session.stop()


@pytest.fixture(scope="module")
def scorer(mlp: Path) -> scoring.Scorer:
    return scoring.Scorer(mlp, columns={"x": NAMES}, keep=["id"], reproducible=True)


def table() -> pa.Table:
    x = models.features(ROWS)
    numbers = {n: x[:, i] for i, n in enumerate(NAMES)}
    return pa.table({"id": np.arange(ROWS), **numbers})


def require_rows_of_one_process(made: DataFrame, scorer: scoring.Scorer) -> None:
    """All rows, each once, with the bits of this process."""
    rows = sorted(made.collect(), key=lambda row: row["id"])
    assert [row["id"] for row in rows] == list(range(ROWS))
    found = np.array([row["y"] for row in rows], np.float32)
    np.testing.assert_array_equal(found, models.numbers(scorer(table())["y"]))


def test_iterators(mlp: Path) -> None:
    scorer = scoring.Scorer(mlp, keep=["id"], reproducible=True)
    given = models.table(ROWS)
    batches = given.to_batches(max_chunksize=64)
    made = pa.Table.from_batches(list(map_in_arrow(scorer)(iter(batches))))
    assert made.schema.field("y").type == pa.list_(pa.float32())
    expected = models.numbers(scorer(given)["y"])
    np.testing.assert_array_equal(models.numbers(made["y"]), expected)
    frames = [batch.to_pandas() for batch in batches]
    found = list(map_in_pandas(scorer)(iter(frames)))
    rows = np.concatenate([np.stack(frame["y"].to_list()) for frame in found])
    np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("form", ["mapInArrow", "mapInPandas"])
def test_spark_gives_the_bits_of_one_process(
    spark: SparkSession, scorer: scoring.Scorer, form: str
) -> None:
    frame = spark.createDataFrame(table()).repartition(PARTS)
    function: Form = {"mapInArrow": map_in_arrow, "mapInPandas": map_in_pandas}[form]
    made = getattr(frame, form)(function(scorer), schema(scorer, frame.schema))
    require_rows_of_one_process(made, scorer)


def executor() -> int:
    """The process of Java that this worker's Python was started by."""
    process = os.getpid()
    while "java" not in os.readlink(f"/proc/{process}/exe"):
        stat = Path(f"/proc/{process}/stat").read_text()
        process = int(stat.rpartition(")")[2].split()[1])
    return process


def test_one_is_killed_in_the_middle(
    spark: SparkSession, scorer: scoring.Scorer, tmp_path: Path
) -> None:
    """With it go the rows that it has scored for others: nothing is lost or twice."""
    mark = str(tmp_path / "mark")

    def dying(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in map_in_arrow(scorer)(batches):
            if ROWS // 2 in batch["id"].to_pylist():
                try:
                    Path(mark).touch(exist_ok=False)
                except FileExistsError:
                    pass
                else:
                    os.kill(executor(), signal.SIGKILL)
                    time.sleep(60)  # until Spark ends this process, too
            yield batch

    frame = spark.createDataFrame(table()).repartition(PARTS)
    made = frame.mapInArrow(dying, schema(scorer, frame.schema))
    # The shuffle keeps what a worker has scored, which goes with it.
    require_rows_of_one_process(made.repartition(2), scorer)
    assert Path(mark).exists()
