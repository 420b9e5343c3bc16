"""One pipeline, and one folder of compiled code, for all tests of a session."""

from __future__ import annotations

import pytest

from nanoloom.cache import Cache
from tests.conformance.pipeline import Pipeline


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Pipeline:
    """The workers of pytest-xdist share the folder, too."""
    base = tmp_path_factory.getbasetemp()
    return Pipeline(Cache((base if worker_id == "master" else base.parent) / "cache"))
