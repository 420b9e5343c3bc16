"""One cache for the sessions of all files here, which have the same kernels."""

from __future__ import annotations

import pytest

from nanoloom.cache import Cache


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("cache"))
