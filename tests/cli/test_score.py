"""nanoloom score, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nanoloom.scoring import Scorer
from tests.cli.conftest import Command
from tests.scoring import models


def test_a_file(nanoloom: Command, tmp_path: Path) -> None:
    model, rows, out = models.mlp(tmp_path), tmp_path / "rows", tmp_path / "out"
    pq.write_table(models.table(50), rows, row_group_size=20)
    said = nanoloom("score", model, rows, "-o", out, "--keep", "id", "--json")
    assert said.status == 0, said.err
    facts = json.loads(said.out)
    assert (facts["rows"], facts["resumed_rows"], facts["error_rows"]) == (50, 0, 0)
    made = pq.read_table(out)
    assert made["id"].to_pylist() == list(range(50))
    expected = Scorer(model)({"x": models.features(50)})["y"]
    np.testing.assert_array_equal(models.numbers(made["y"]), expected)
    assert "50 rows -> " in nanoloom("score", model, rows, "-o", out).out


def test_features_errors_and_masks(nanoloom: Command, tmp_path: Path) -> None:
    model, rows, out = models.words(tmp_path), tmp_path / "rows", tmp_path / "out"
    pq.write_table(pa.table({"words": [[1, 2, 3], [999], None]}), rows)
    words = ["--column", "ids=words", "--mask", "mask", "--fill", "ids=1"]
    command = ["score", model, rows, "-o", out, *words]
    assert nanoloom(*command).told.startswith("nanoloom: row 1: ")
    assert not (tmp_path / "out.parts").exists()  # other options may follow
    said = nanoloom(*command, "--errors", "column", "--only-output", "mean")
    assert said.status == 0 and "2 rows could not be scored" in said.err
    assert pq.read_schema(out).names == ["mean", "error"]


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["--errors", "ignore"], 2, "ignore is none of raise, column"),
        (["--fill", "x=much", "--mask", "x"], 2, "'much' is no number"),
        (["--column", "x"], 2, "'x' is not like x=age,size"),
        (["--level", "pentium"], 2, "no target named 'pentium'"),
        (["--column", "x=w"], 1, "give columns={'x': ...} (--column x=...)"),
        (["--keep", "w"], 1, "keep: the table has no column 'w'"),
    ],
)
def test_refusals(
    nanoloom: Command, tmp_path: Path, words: list[str], status: int, told: str
) -> None:
    model, rows = models.mlp(tmp_path), tmp_path / "rows.parquet"
    pq.write_table(models.table(3), rows)
    said = nanoloom("score", model, rows, "-o", tmp_path / "out.parquet", *words)
    assert said.status == status and told in said.told, said.err
    said = nanoloom("score", model, rows, "-o", rows)
    assert said.status == 2 and "would replace the input" in said.told
    said = nanoloom("score", model, rows, "-o", model)
    assert said.status == 2 and "would replace the model" in said.told
    for out, status, told in (
        ("-", 2, "a table is not printed; name a file .parquet"),
        (tmp_path / "no" / "out", 1, "there is no folder"),
        ("/dev/null", 1, "is a pipe or a device; name a file"),
    ):
        said = nanoloom("score", model, rows, "-o", out)
        assert said.status == status and told in said.told, said.err
