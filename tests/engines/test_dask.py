"""Dask's own local cluster: two workers, one of them killed in the middle."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from nanoloom import scoring
from nanoloom.dask import Plugin, score, score_array
from nanoloom.errors import InputError
from tests.scoring import models

ROWS = 2000
NAMES = [f"f{i}" for i in range(50)]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def scorer(mlp: Path) -> scoring.Scorer:
    return scoring.Scorer(mlp, columns={"x": NAMES}, keep=["id"], reproducible=True)


def frame() -> pd.DataFrame:
    made = pd.DataFrame(models.features(ROWS), columns=NAMES)
    made.insert(0, "id", np.arange(ROWS))
    return made


def values(made: pd.DataFrame) -> np.ndarray:
    return np.stack(made["y"].to_list())


def test_frames_are_those_of_one_process(
    client: Client, scorer: scoring.Scorer
) -> None:
    client.register_plugin(Plugin(scorer))
    given = frame()
    made = score(dd.from_pandas(given, npartitions=7), scorer)
    assert list(made.columns) == ["id", "y"]
    found = made.compute()
    np.testing.assert_array_equal(values(found), values(scorer(given)))
    assert found["id"].tolist() == list(range(ROWS))
    opened = client.run(
        lambda: len(__import__("nanoloom.scoring.place").scoring.place._opened)
    )
    assert list(opened.values()) == [1, 1]


def test_arrays(client: Client, mlp: Path) -> None:
    plain = scoring.Scorer(mlp, reproducible=True)
    x = models.features(ROWS)
    made = score_array(da.from_array(x, chunks=(300, 50)), plain)
    assert made.shape == (ROWS, 7) and made.dtype == np.float32
    np.testing.assert_array_equal(made.compute(), plain({"x": x})["y"])
    with pytest.raises(InputError, match="is cut within rows"):
        score_array(da.from_array(x, chunks=(300, 25)), plain)


def _die_once(part: pd.DataFrame, mark: str) -> pd.DataFrame:
    """Kills the first worker that has a partition from the middle."""
    if ROWS // 2 in part["id"].to_numpy():
        try:
            Path(mark).touch(exist_ok=False)
        except FileExistsError:
            return part
        os.kill(os.getpid(), signal.SIGKILL)
    return part


def test_one_is_killed_in_the_middle(
    client: Client, scorer: scoring.Scorer, tmp_path: Path
) -> None:
    given, mark = frame(), tmp_path / "mark"
    parts = dd.from_pandas(given, npartitions=10)
    parts = parts.map_partitions(_die_once, str(mark), meta=parts._meta)
    found = score(parts, scorer).compute()
    assert mark.exists()
    assert found["id"].tolist() == list(range(ROWS))
    np.testing.assert_array_equal(values(found), values(scorer(given)))
