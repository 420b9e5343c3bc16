"""Files appear whole or not at all, whoever is killed, with nothing beside them."""

from __future__ import annotations

import errno
import os
import signal
import stat
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nanoloom import sealed_files
from nanoloom.binary import shared
from nanoloom.binary.output_files import clean, replaced, scratch_beside
from nanoloom.cache import Cache
from tests.runtime.native import TRIPLE, Block, kernels, table

LONG_AGO = time.time() - 3600


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=["nameless", "named"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Files without a name, and what is done where there are none."""
    original = os.open

    def refuses(path: str, flags: int, *more: int, **others: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return original(path, flags, *more, **others)

    if request.param == "named":
        monkeypatch.setattr(os, "open", refuses)
    return request.param


def test_a_file_appears_at_the_end(tmp_path: Path, way: str) -> None:
    path = tmp_path / "file"
    mask = os.umask(0o027)
    try:
        for content in (b"first", b"second"):
            with replaced(path, 0o777) as file:
                file.write(content)
                file.flush()
                hidden = [name for name in names(tmp_path) if name != "file"]
                assert bool(hidden) == (way == "named")
                assert not path.exists() or path.read_bytes() == b"first"
            assert path.read_bytes() == content and names(tmp_path) == ["file"]
            assert stat.S_IMODE(path.stat().st_mode) == 0o750
    finally:
        os.umask(mask)


@pytest.mark.usefixtures("way")
def test_what_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for before in (False, True):
        if before:
            path.write_text("before")
        with pytest.raises(ZeroDivisionError), replaced(path) as file:
            file.write(b"half")
            raise ZeroDivisionError
        assert names(tmp_path) == (["file"] if before else [])
    assert path.read_text() == "before"
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError), replaced(tmp_path / "folder"):
        raise AssertionError("begun")


def test_drafts_of_the_killed_go_and_those_in_use_stay(tmp_path: Path) -> None:
    old, young = tmp_path / ".nanoloom-old", tmp_path / ".nanoloom-young"
    own = tmp_path / ".own"
    for path in (old, young, own):
        path.write_text("half")
    for path in (old, own):
        os.utime(path, (LONG_AGO, LONG_AGO))
    with scratch_beside(tmp_path / "x") as used:
        os.utime(used, (LONG_AGO, LONG_AGO))
        clean(tmp_path)
        assert names(tmp_path) == sorted([used.name, young.name, own.name])


def write(folder: Path, weights: Block, cache: Cache) -> None:
    folder.mkdir()
    shared.write_shared_library(
        kernels(),
        table(100_000),
        weights,
        folder / "model.so",
        "model",
        triple=TRIPLE,
        cache=cache,
    )


def killed_while_writing(
    folder: Path, weights: Block, cache: Cache, seconds: float
) -> None:
    """A child that writes a library after the other, ended in the middle."""
    process = os.fork()
    if not process:
        for number in range(1000):
            write(folder / f"{number}", weights, cache)
        os._exit(0)
    time.sleep(seconds)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def test_a_killed_process_leaves_nothing_or_all(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is linked is the same each time: nearly all of the time it writes."""
    random, linked, kept = np.random.default_rng(1), shared.linked, list[bytes]()

    def once(*given: Any, **words: Any) -> bytes:
        kept[:] = kept or [linked(*given, **words)]
        return kept[0]

    monkeypatch.setattr(shared, "linked", once)
    weights = Block(np.ones(3 * 100_000, np.float32).tobytes())
    write(tmp_path / "first", weights, cache)  # and the cache has all it needs
    found: list[list[str]] = []
    for turn in range(15):
        folder = tmp_path / str(turn)
        folder.mkdir()
        killed_while_writing(folder, weights, cache, float(random.uniform(0.02, 0.2)))
        for output in folder.iterdir():
            found.append(names(output))
            # One after the other, with nothing between.
            assert found[-1] in ([], ["model.h"], ["model.h", "model.so"])
            if "model.so" in found[-1]:
                assert sealed_files.is_whole(output / "model.so")
    assert [] in found and ["model.h", "model.so"] in found
