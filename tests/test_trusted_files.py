"""What another user could have written is not run, and entries of a cache made anew."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import nanoloom
from nanoloom import trusted_files
from nanoloom.cache import Cache, key
from nanoloom.errors import Error
from tests.cli import models

OTHER = 54321  # a user that there is none of
X = np.ones((2, 3), np.float32)


@pytest.fixture
def library(tmp_path: Path) -> Path:
    model = models.write(tmp_path, models.RELU)
    program = nanoloom.compile(model, cache=tmp_path / "cache")
    return program.save(tmp_path / "model.so")


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The user whose files the tests make, as somebody else sees them."""
    mine = os.geteuid()
    monkeypatch.setattr(trusted_files, "ROOT", OTHER + 1)
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    monkeypatch.delenv(trusted_files.VARIABLE, raising=False)
    yield mine


def status(mode: int, uid: int, gid: int = 0) -> os.stat_result:
    return os.stat_result((mode, 0, 0, 0, uid, gid, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("mode", "uid", "gid", "said"),
    [
        (0o100644, OTHER, 0, ""),
        (0o100644, 0, 0, ""),
        (0o100644, 7, 0, "it belongs to {seven}"),
        (0o100666, OTHER, 0, "all users may write it"),
        (0o100664, OTHER, 54322, "group 54322 may write it"),
        (0o100664, OTHER, 0, ""),
        (0o040777, OTHER, 0, "all users may write it"),
        (0o041777, 0, 0, ""),  # as of /tmp
        (0o041777, 7, 0, "it belongs to {seven}"),
    ],
)
def test_who_could_have_written(
    monkeypatch: pytest.MonkeyPatch, mode: int, uid: int, gid: int, said: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    monkeypatch.delenv(trusted_files.VARIABLE, raising=False)
    seven = trusted_files.user(7)
    assert trusted_files.others(status(mode, uid, gid)) == said.format(seven=seven)


def test_users_are_trusted_by_name_or_number(monkeypatch: pytest.MonkeyPatch) -> None:
    someone = next(x for x in pwd.getpwall() if x.pw_uid not in (0, os.geteuid()))
    monkeypatch.setenv(trusted_files.VARIABLE, f"{someone.pw_name}, 77,nobody-at-all")
    assert {someone.pw_uid, 77} <= trusted_files.trusted()
    assert trusted_files.others(status(0o100644, 78)) != ""


def test_libraries_of_others_are_refused(library: Path, foreign: int) -> None:
    name = trusted_files.user(foreign)
    reason = f"model.so: somebody else could have written it: it belongs to {name}; "
    with pytest.raises(Error, match=reason):
        nanoloom.load(library)


def test_libraries_of_the_trusted_run(
    library: Path, foreign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(trusted_files.VARIABLE, str(foreign))
    assert (nanoloom.load(library)({"x": X})["y"] == X).all()


def test_a_folder_that_all_may_write(library: Path) -> None:
    folder = library.parent / "open"
    folder.mkdir()
    os.chmod(folder, 0o777)
    moved = library.rename(folder / "model.so")
    with pytest.raises(Error, match="of its folder, all users may write it"):
        nanoloom.load(moved)
    os.chmod(folder, 0o1777)
    assert (nanoloom.load(moved)({"x": X})["y"] == X).all()


def test_entries_that_all_may_write_are_made_again(tmp_path: Path) -> None:
    cache, name = Cache(tmp_path / "cache"), key("an entry")
    cache.put(name, b"mine")
    entry = tmp_path / "cache/kernels" / name
    os.chmod(entry, 0o666)
    assert cache.get(name) is None
    cache.put(name, b"again")
    assert cache.get(name) == b"again"


def test_folders_that_all_may_write_are_made_again(tmp_path: Path) -> None:
    cache, name, made = Cache(tmp_path / "cache"), key("a folder"), list[str]()

    def build(folder: Path) -> None:
        made.append("once")
        (folder / "file").write_text("content")

    for _ in range(2):
        with cache.folder(name, build):
            pass
    assert made == ["once"]
    os.chmod(tmp_path / "cache/models" / name, 0o777)
    with cache.folder(name, build) as folder:
        assert (folder / "file").read_text() == "content"
    assert made == ["once", "once"]


def test_a_cache_that_all_may_write_is_not_used(tmp_path: Path) -> None:
    root = tmp_path / "cache"
    root.mkdir()
    os.chmod(root, 0o777)
    said: list[str] = []
    cache = Cache(root, warn=said.append)
    cache.put(key("x"), b"1")
    assert cache.get(key("x")) == b"1"
    assert said == [
        f"the cache {root} cannot be written to (somebody else could write it: "
        "all users may write it): not used"
    ]
    assert not list(root.iterdir())
