"""Several processes and one cache: races, kills, readers, a cache that is no use."""

from __future__ import annotations

import mmap
import multiprocessing
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from nanoloom.cache import Cache, file_digest
from nanoloom.cache.cache_folder import STALE_SECONDS

FORK = multiprocessing.get_context("fork")
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


def _start(function: Callable[..., None], *arguments: object) -> tuple[int, Connection]:
    """Run `function(connection, *arguments)` in a fork; its id and the other end."""
    here, there = FORK.Pipe()
    process = FORK.Process(target=function, args=(there, *arguments), daemon=True)
    process.start()
    assert process.pid is not None
    return process.pid, here


def _race(wire: Connection, root: Path, content: bytes) -> None:
    def build(folder: Path) -> None:
        model(content)(folder)
        wire.send("built")
        wire.recv()

    with Cache(root).folder(A, build) as path:
        wire.send((path, (path / "model.so").read_bytes()))
        wire.recv()


def test_two_processes_that_build_at_once_get_the_first(cache: Cache) -> None:
    racers = [_start(_race, cache.root, content) for content in (b"one", b"two")]
    assert [wire.recv() for _, wire in racers] == ["built", "built"]
    results: list[object] = []
    for _, wire in racers:
        wire.send("go on")
        results.append(wire.recv())
    assert results == [(cache.root / "models" / A, b"one")] * 2
    assert published(cache, A, never) == cache.root / "models" / A
    assert not list((cache.root / "tmp").iterdir())
    for _, wire in racers:
        wire.send("end")


def _hammer(wire: Connection, root: Path, content: bytes) -> None:
    cache = Cache(root, limit_bytes=3_000)  # room for little: removals all the time
    wrong = 0
    for turn in range(150):
        name = f"{turn % 5}" * 64
        cache.put(name, content * 200)
        wrong += cache.get(name) not in (None, b"1" * 200, b"2" * 200)
        kept = Cache(root, limit_bytes=3_000)
        with kept.folder(name, model(content)) as path:
            wrong += (path / "model.so").read_bytes() not in (b"1", b"2")
    wire.send((wrong, cache._spare))  # pyright: ignore[reportPrivateUsage]


def test_many_writes_at_once_never_show_a_half(cache: Cache) -> None:
    wires = [_start(_hammer, cache.root, content)[1] for content in (b"1", b"2")]
    assert [wire.recv() for wire in wires] == [(0, None)] * 2


def _digests(wire: Connection, path: Path) -> None:
    wire.send(file_digest(path))


def test_a_forked_child_digests_without_its_parents_threads(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(os.urandom(1 << 20) * 8)
    expected = file_digest(path)
    process, wire = _start(_digests, path)
    assert wire.poll(timeout=30) and wire.recv() == expected
    _ended(process)


def _stopped_while_writing(wire: Connection, root: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "model.so").write_bytes(b"half")
        wire.send("writing")
        time.sleep(60)

    published(Cache(root), A, build)


def test_the_draft_of_a_killed_process_is_removed_when_it_is_old(cache: Cache) -> None:
    process, wire = _start(_stopped_while_writing, cache.root)
    assert wire.recv() == "writing"
    (draft,) = (cache.root / "tmp").iterdir()
    long_ago = time.time() - 2 * STALE_SECONDS
    os.utime(draft, (long_ago, long_ago))
    Cache(cache.root).put(B, b"x")
    assert draft.exists(), "its process lives and holds a lock"
    os.kill(process, signal.SIGKILL)
    _ended(process)
    Cache(cache.root).put(B, b"x")
    assert not draft.exists()
    path = published(cache, A, model())
    assert (path / "model.so").read_bytes() == b"code"


def _ended(process: int) -> None:
    for child in multiprocessing.active_children():
        if child.pid == process:
            child.join(timeout=30)


def test_a_young_draft_without_a_lock_stays(cache: Cache) -> None:
    cache.put(A, b"x")
    young = cache.root / "tmp" / "young"
    young.mkdir()
    Cache(cache.root).put(B, b"x")
    assert young.exists()


def _reads_a_model(wire: Connection, root: Path, locked: bool) -> None:
    with ExitStack() as held:
        path = held.enter_context(Cache(root).folder(A, never))
        with (path / "model.so").open("rb") as file:
            memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        if not locked:
            held.close()
        wire.send("mapped")
        wire.recv()
        wire.send(bytes(memory))
        wire.recv()


@pytest.mark.parametrize("locked", [False, True])
def test_a_reader_keeps_what_it_mapped(tmp_path: Path, locked: bool) -> None:
    code = b"c" * 5_000
    writer, wire = _start(_writes_a_model, tmp_path, code)
    assert wire.recv() == "done"
    _ended(writer)  # and its lock with it
    _, reader = _start(_reads_a_model, tmp_path, locked)
    assert reader.recv() == "mapped"
    Cache(tmp_path, limit_bytes=1_000).put(B, b"x" * 900)
    assert (tmp_path / "models" / A).exists() == locked
    reader.send("read")
    assert reader.recv() == code
    reader.send("end")


def _writes_a_model(wire: Connection, root: Path, code: bytes) -> None:
    published(Cache(root), A, model(code))
    wire.send("done")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach; pytest's own is for one."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def _work(cache: Cache, warnings: list[str]) -> object:
    cache.put(A, b"x" * 5_000)
    cache.put(A, b"x" * 5_000)
    got = cache.get(A)
    path = published(cache, A, model(b"m" * 5_000))
    same = published(cache, A, never) == path
    inside = path.is_relative_to(cache.root)
    return got, (path / "model.so").read_bytes()[:1], same, inside, warnings


def _without_permission(wire: Connection, root: Path) -> None:
    if os.getuid() == 0:
        os.setuid(65534)  # to root every folder is writable
    warnings: list[str] = []
    wire.send(_work(Cache(root, warn=warnings.append), warnings))
    wire.recv()


def test_without_permission_work_goes_on(open_folder: Path) -> None:
    os.chmod(open_folder, 0o555)
    _, wire = _start(_without_permission, open_folder / "cache")
    got, code, same, inside, warnings = wire.recv()
    wire.send("end")
    assert (got, code, same, inside) == (b"x" * 5_000, b"m", True, False)
    assert len(warnings) == 1 and "Permission denied" in warnings[0]


def test_a_cache_that_is_readable_only_is_read(open_folder: Path) -> None:
    owner = Cache(open_folder / "cache")
    owner.put(A, b"kept")
    published(owner, A, model())
    for path in open_folder.rglob("*"):
        os.chmod(path, 0o555 if path.is_dir() else 0o444)
    _, wire = _start(_without_permission, open_folder / "cache")
    got, code, same, inside, warnings = wire.recv()
    wire.send("end")
    assert (got, code, same, inside) == (b"kept", b"c", True, True)
    assert len(warnings) == 1 and "Permission denied" in warnings[0]


def _on_a_full_disk(wire: Connection, root: Path) -> None:
    # No file may grow beyond this: the nearest that a process can come to a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, resource.RLIM_INFINITY))
    warnings: list[str] = []
    cache, builds = Cache(root, warn=warnings.append), list[Path]()

    def build(folder: Path) -> None:
        builds.append(folder)
        if len(builds) == 2:
            everything = resource.RLIM_INFINITY, resource.RLIM_INFINITY
            resource.setrlimit(resource.RLIMIT_FSIZE, everything)
        model(b"m" * 5_000)(folder)

    path = published(cache, A, build)
    cache.put(B, b"x" * 5_000)
    elsewhere = not path.is_relative_to(root)
    wire.send((elsewhere, (path / "model.so").stat().st_size, warnings))
    wire.recv()


def test_on_a_full_disk_work_goes_on_elsewhere(cache: Cache) -> None:
    _, wire = _start(_on_a_full_disk, cache.root)
    elsewhere, size, warnings = wire.recv()
    wire.send("end")
    assert elsewhere and size == 5_000
    assert len(warnings) == 1 and "(File too large)" in warnings[0]
    assert not list((cache.root / "tmp").iterdir()), "the draft took its room with it"


def test_a_root_that_cannot_be_a_folder_gives_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.warns(RuntimeWarning, match="Not a directory") as caught:
        result = _work(Cache(tmp_path / "file" / "cache"), [])
    assert result == (b"x" * 5_000, b"m", True, False, []) and len(caught) == 1
