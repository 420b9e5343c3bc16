"""One cache of compiled C for all tests of a session."""

from __future__ import annotations

import pytest

from nanoloom.cache import Cache


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("native"))
