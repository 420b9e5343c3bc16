"""Entries of the cache: bytes and folders, damage, eviction, roots."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nanoloom.cache import Cache, default_root, file_operations

A, B, C = (character * 64 for character in "abc")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def model(content: bytes = b"code") -> Callable[[Path], None]:
    """A build of a library and, in a folder, parameters."""

    def build(folder: Path) -> None:
        (folder / "model.so").write_bytes(content)
        (folder / "data").mkdir()
        (folder / "data" / "parameters.bin").write_bytes(b"\1" * 100)

    return build


def never(folder: Path) -> None:
    raise AssertionError("built again")


def published(cache: Cache, key: str, build: Callable[[Path], None]) -> Path:
    """The folder's path, when nobody reads it any more."""
    with cache.folder(key, build) as path:
        return path


def test_bytes_come_back(cache: Cache) -> None:
    assert cache.get(A) is None and not cache.root.exists()
    for data in (b"", b"code", os.urandom(100_000)):
        cache.put(A, data)
        assert cache.get(A) == data == Cache(cache.root).get(A)
    assert cache.get(B) is None
    assert not list((cache.root / "tmp").iterdir())
    assert (cache.root / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f59")


@pytest.mark.parametrize("damage", ["cut", "flip", "grow", "empty", "head"])
def test_a_damaged_kernel_is_absent_and_replaced(cache: Cache, damage: str) -> None:
    cache.put(A, b"code" * 100)
    path = cache.root / "kernels" / A
    good = path.read_bytes()
    flipped = good[:-9] + bytes([good[-9] ^ 1]) + good[-8:]
    bad = {"cut": good[:-1], "flip": flipped, "grow": good + b"x", "empty": b""}
    path.write_bytes(bad.get(damage, b"x" + good[1:]))
    assert cache.get(A) is None and not path.exists()
    cache.put(A, b"code" * 100)
    assert cache.get(A) == b"code" * 100


def test_a_folder_is_built_once(cache: Cache) -> None:
    path = published(cache, A, model())
    assert (path / "model.so").read_bytes() == b"code"
    assert (path / "data" / "parameters.bin").stat().st_size == 100
    assert published(cache, A, never) == path == published(Cache(cache.root), A, never)
    assert not list((cache.root / "tmp").iterdir())


def test_a_failed_build_leaves_nothing(cache: Cache) -> None:
    def fails(folder: Path) -> None:
        model()(folder)
        raise FileNotFoundError(errno.ENOENT, "no such file", str(folder / "weights"))

    with pytest.raises(FileNotFoundError, match="weights"):
        published(cache, A, fails)
    assert not list((cache.root / "tmp").iterdir())
    assert published(cache, A, model()) == cache.root / "models" / A


def _cut(path: Path) -> None:
    os.truncate(path / "model.so", 3)


def _flip(path: Path) -> None:
    (path / "model.so").write_bytes(b"cove")


def _lose(path: Path) -> None:
    (path / "data" / "parameters.bin").unlink()


def _cut_manifest(path: Path) -> None:
    text = (path / file_operations.MANIFEST).read_text()
    (path / file_operations.MANIFEST).write_text(text[: text.rindex("\n", 0, -1) + 1])


def _garble_manifest(path: Path) -> None:
    (path / file_operations.MANIFEST).write_bytes(b"\xff\xfe\0 1 2 3")


def _lose_manifest(path: Path) -> None:
    (path / file_operations.MANIFEST).unlink()


@pytest.mark.parametrize(
    "damage", [_cut, _flip, _lose, _cut_manifest, _garble_manifest, _lose_manifest]
)
def test_a_damaged_folder_is_replaced(
    cache: Cache, damage: Callable[[Path], None]
) -> None:
    damage(published(cache, A, model()))
    path = published(cache, A, model(b"new"))
    assert (path / "model.so").read_bytes() == b"new"
    assert published(Cache(cache.root), A, never) == path == cache.root / "models" / A
    assert not list((cache.root / "tmp").iterdir())


def test_a_flip_that_leaves_no_trace_of_time_is_found(cache: Cache) -> None:
    """As the disk makes it, in a file of any size."""

    def build(folder: Path) -> None:
        with (folder / "parameters.bin").open("wb") as file:
            file.truncate(20 << 20)

    path = published(cache, A, build) / "parameters.bin"
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(10 << 20)
        file.write(b"x")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    path = published(cache, A, model(b"new"))
    assert (path / "model.so").read_bytes() == b"new"


def _use(cache: Cache, *names: str) -> None:
    """As if each were used a second after the one before, long ago."""
    for number, name in enumerate(names):
        for folder in ("kernels", "models"):
            if (path := cache.root / folder / name).exists():
                os.utime(path, (1e9 + number, 1e9 + number))


def test_the_least_recently_used_go(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit_bytes=3_500)
    for name in (A, B, C):
        cache.put(name, b"x" * 1_000)
    _use(cache, A, B, C)
    assert cache.get(A) is not None  # and is now the last used
    Cache(tmp_path, limit_bytes=3_500).put("d" * 64, b"x" * 1_000)
    found = sorted(path.name[0] for path in (tmp_path / "kernels").iterdir())
    assert found == ["a", "c", "d"]
    Cache(tmp_path, limit_bytes=3_500).put("e" * 64, b"x" * 4_000)  # would not fit
    assert sorted(p.name[0] for p in (tmp_path / "kernels").iterdir()) == found


def test_an_entry_in_use_stays(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit_bytes=100)
    with cache.folder(A, model()) as one, cache.folder(B, model()) as two:
        cache.put(C, b"x" * 50)
        assert one.exists() and two.exists(), "in use by this process"
        Cache(tmp_path, limit_bytes=100).put(C, b"x" * 50)
        assert one.exists() and two.exists(), "locked: in use by another"
    Cache(tmp_path, limit_bytes=100).put(C, b"x" * 50)
    assert not one.exists() and not two.exists()


def test_the_default_root_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/x/caches")
    monkeypatch.delenv("NANOLOOM_CACHE", raising=False)
    assert default_root() == Path("/x/caches/nanoloom")


def test_a_temporary_cache_ends_with_its_process() -> None:
    code = """
import os
from nanoloom.cache import Cache
cache = Cache.temporary()
cache.put("a" * 64, b"x")
assert cache.get("a" * 64) == b"x"
child = os.fork()
if child == 0:
    raise SystemExit  # runs what is registered for the end, as far as it is its own
os.waitpid(child, 0)
assert cache.get("a" * 64) == b"x"
print(cache.root)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not Path(done.stdout.strip()).exists()


def test_the_next_process_removes_what_a_killed_one_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
import os, sys
from nanoloom.cache import Cache
print(Cache.temporary().root, flush=True)
sys.stdin.read()
"""
    monkeypatch.setattr(file_operations, "_with_room", lambda: tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout
        folder = Path(other.stdout.readline().strip())
        assert folder.parent == tmp_path
        (folder / "draft").write_bytes(b"x")
        new = file_operations.temporary_folder()
        os.utime(folder, (0, 0))
        file_operations.temporary_folder()
        assert (folder / "draft").exists(), "its process lives"
        other.kill()
        other.wait()
        os.utime(new, (0, 0))
        file_operations.temporary_folder()
    assert not folder.exists() and new.exists()
