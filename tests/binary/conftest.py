"""One cache of compiled C for all tests of a session."""

from __future__ import annotations

import platform

import pytest

from nanoloom.cache import Cache
from tests.c_libraries import lend


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("native"))


@pytest.fixture(scope="session")
def linking(cache: Cache) -> Cache:
    """The same, with this machine's C library in it."""
    lend(platform.machine(), cache)
    return cache
