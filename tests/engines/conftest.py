"""These tests are collected only where the engines are installed: `make engines`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.scoring import models

ENGINES = ("ray", "dask", "distributed", "pyspark", "pandas")
collect_ignore_glob = [] if all(map(find_spec, ENGINES)) else ["test_*.py"]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def mlp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    return models.mlp(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session", autouse=True)
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of all workers, who are told of it by the environment."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("NANOLOOM_CACHE", str(folder))
        patch.setenv("PYTHONPATH", str(ROOT))
        yield folder
