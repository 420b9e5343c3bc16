"""Libraries are checked before they are loaded, and go when nobody has them."""

from __future__ import annotations

import errno
import gc
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from nanoloom import sealed_files
from nanoloom.api.loaded import load
from nanoloom.binary.shared import write_in_process
from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.runtime import loading
from nanoloom.runtime.library import Library
from tests.runtime.native import TRIPLE, aligned, expected, in_process, kernels, table

DAMAGED = (
    r"model\.so: is (damaged: it holds other bytes|no library of nanoloom, or not)"
)


def test_damaged_libraries_are_refused(tmp_path: Path, cache: Cache) -> None:
    """Any byte flipped, any length cut off, anything put behind: never loaded."""
    content = in_process(tmp_path, cache, 5).read_bytes()
    path, random = tmp_path / "model.so", np.random.default_rng(11)
    damaged = [content + b"x", content[:-1], b"", content[: sealed_files.SEAL_BYTES]]
    for place in random.integers(0, len(content), 150).tolist():
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(random.integers(8))
        damaged += [bytes(flipped), content[:place]]
    for each in damaged:
        path.write_bytes(each)
        with pytest.raises(Error, match=DAMAGED):
            Library(path)
    path.write_bytes(content)
    assert Library(path).inputs == table(5).inputs


def maps() -> str:
    return Path("/proc/self/maps").read_text()


def ran(library: Library, tasks: int) -> None:
    """Run the program of `table` with two threads."""
    a, b, weights = np.ones((3, 3 * tasks), np.float32)
    with library.create(2, aligned(weights)) as instance:
        out, total = library.new_outputs()
        instance.run([a, b], [out, total])
        assert (total == expected(a, b, weights)[1]).all()


def test_code_goes_with_its_last_owner(tmp_path: Path, cache: Cache) -> None:
    path = in_process(tmp_path, cache, 5)
    library = Library(path)
    ran(library, 5)
    weights = aligned(np.ones(15, np.float32))
    instance = library.create(3, weights)
    arena = instance.arena()
    del library
    instance.run([weights, weights], [np.ones(15, np.float32) for _ in range(2)])
    instance.close()
    del instance
    assert str(path) in maps(), "the arena is the library's"
    del arena
    assert str(path) not in maps()


def test_what_is_freed_goes_back_to_the_system(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the last owner of the code, not before."""
    asked: list[int] = []
    gc.collect()  # of other tests' libraries
    monkeypatch.setattr(loading, "_trim", asked.append)
    library = Library(in_process(tmp_path, cache, 5))
    instance = library.create(1, aligned(np.ones(15, np.float32)))
    del library
    assert asked == []
    del instance
    assert asked == [0]


def test_code_outlives_a_cycle_of_its_owners(tmp_path: Path, cache: Cache) -> None:
    path = in_process(tmp_path, cache, 5)
    before = set(os.listdir("/proc/self/task"))
    for _ in range(3):
        library = Library(path)
        instance = library.create(3, aligned(np.ones(15, np.float32)))
        arena = instance.arena()
        for each in (library, instance, arena):
            each.__dict__["others"] = [library, instance, arena]
        del library, instance, arena, each
        gc.collect()
        assert str(path) not in maps()
        assert set(os.listdir("/proc/self/task")) <= before


def test_a_new_file_in_the_place_of_a_loaded_one(tmp_path: Path, cache: Cache) -> None:
    """The system knows a loaded library by its name."""
    path = tmp_path / "model.so"
    libraries: list[Library] = []
    for tasks in (2, 3, 4):
        write_in_process(kernels(), table(tasks), path, triple=TRIPLE, cache=cache)
        libraries += [Library(path), Library(path)]
    shutil.rmtree(tmp_path)
    for number, library in enumerate(libraries):
        assert library.inputs == table(2 + number // 2).inputs
        ran(library, 2 + number // 2)


def test_code_where_nothing_may_run(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mount with noexec: the code runs from memory, and goes as any other does."""
    monkeypatch.setattr(
        loading, "is_noexec", lambda path: path.is_relative_to(tmp_path)
    )
    (tmp_path / "other").mkdir()
    paths = [in_process(tmp_path, cache, 5), in_process(tmp_path / "other", cache, 6)]
    before = set(os.listdir("/proc/self/fd"))
    libraries = [Library(path) for path in paths]  # memory files take the same number
    for number, (path, tasks) in enumerate(zip(paths, (5, 6), strict=True)):
        ran(libraries[number], tasks)
        assert str(path) not in maps() and f"/memfd:{path.name}" in maps()
    assert set(os.listdir("/proc/self/fd")) == before
    del libraries
    assert "/memfd:model.so" not in maps()


def test_code_that_memory_does_not_run_either(
    tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(name: str) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(loading, "is_noexec", lambda _: True)
    monkeypatch.setattr(os, "memfd_create", refused)
    with pytest.raises(Error, match=r"runs no code \(noexec\).* where code may run"):
        Library(in_process(tmp_path, cache, 5))


def test_mounts_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = os.statvfs(tmp_path)
    for flag, answer in ((0, False), (os.ST_NOEXEC, True), (os.ST_RDONLY, False)):
        facts = [*plain[:8], flag, plain.f_namemax]
        monkeypatch.setattr(os, "statvfs", lambda _, f=facts: os.statvfs_result(f))
        assert loading.is_noexec(tmp_path) == answer


def test_what_is_no_library(tmp_path: Path) -> None:
    for path, said in ((tmp_path, "is a folder; name a file"), ("x", "no such file")):
        with pytest.raises(Error, match=said):
            load(tmp_path / path)
