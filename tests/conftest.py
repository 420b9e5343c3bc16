"""What tests have in common is made once in a process of them.

Most have a cache of their own, and are about what comes behind it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from nanoloom.binary import link
from nanoloom.binary.link import Source
from nanoloom.workers import pool


def pytest_collection() -> None:
    gc.disable()  # all that is collected stays


def pytest_collection_finish() -> None:
    """Thousands of tests are no garbage: nobody looks for any among them."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def compiled_c_is_kept() -> Iterator[None]:
    """The runtime's few files are the same in all tests, and take half a second."""
    kept: dict[tuple[Source, tuple[str, ...]], bytes] = {}
    compiled = link._compiled

    def looked_up(
        sources: Sequence[Source], command: Sequence[str], scratch: Path, nice: int
    ) -> list[bytes]:
        words = tuple(command)
        new = [source for source in sources if (source, words) not in kept]
        made = compiled(new, command, scratch, nice)
        for source, code in zip(new, made, strict=True):
            kept[source, words] = code
        return [kept[source, words] for source in sources]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(link, "_compiled", looked_up)
        yield


@pytest.fixture(scope="session", autouse=True)
def workers_stay() -> Iterator[None]:
    """To begin takes a worker most of a second, and tests between may need none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "IDLE_SECONDS", 3600.0)
        yield
