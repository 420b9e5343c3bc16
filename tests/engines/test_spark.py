"""Functions for Spark: on plain iterators, and in Spark on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from nanoloom import scoring
from nanoloom.spark import map_in_arrow, map_in_pandas, schema
from tests.scoring import models

ROWS = 500


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2]")
        session = builder.config("spark.ui.enabled", "false").getOrCreate()
        yield session
        session.stop()


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
    spark: SparkSession, mlp: Path, form: str
) -> None:
    names = [f"f{i}" for i in range(50)]
    scorer = scoring.Scorer(mlp, columns={"x": names}, keep=["id"], reproducible=True)
    x = models.features(ROWS)
    columns = {"id": np.arange(ROWS), **{n: x[:, i] for i, n in enumerate(names)}}
    frame = spark.createDataFrame(pa.table(columns)).repartition(4)
    function = {"mapInArrow": map_in_arrow, "mapInPandas": map_in_pandas}[form]
    made = getattr(frame, form)(function(scorer), schema(scorer, frame.schema))
    rows = sorted(made.collect(), key=lambda row: row["id"])
    assert [row["id"] for row in rows] == list(range(ROWS))
    found = np.array([row["y"] for row in rows], np.float32)
    np.testing.assert_array_equal(found, models.numbers(scorer(pa.table(columns))["y"]))
