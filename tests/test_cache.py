"""The disk cache: content as keys, damage, races, kills, eviction, no permission."""

from __future__ import annotations

import dataclasses
import enum
import errno
import mmap
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from blake3 import blake3

from nanoloom.cache import Cache, default_root, digest, file_digest, files, key
from nanoloom.cache.store import STALE_SECONDS
from nanoloom.target import by_name

FORK = multiprocessing.get_context("fork")
A, B, C = (character * 64 for character in "abc")
LONG = files.READ_AT_MOST + 1


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


# Keys


class Mode(enum.Enum):
    FAST = 1
    SMALL = 1.5


@dataclasses.dataclass(frozen=True)
class Options:
    threads: int = 1
    note: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True)
class OtherOptions:
    threads: int = 1


def test_equal_parts_have_equal_keys() -> None:
    target = by_name("znver5")
    assert key(Options(2), target) == key(Options(2), dataclasses.replace(target))
    assert key(Options(note="a")) == key(Options(note="b"))
    assert key({"a": 1, "b": 2}) == key({"b": 2, "a": 1})
    assert key({"x", "y", "z"}) == key(frozenset({"z", "y", "x"}))
    assert key(b"ab") == key(bytearray(b"ab")) == key(memoryview(b"ab"))


def test_different_parts_have_different_keys() -> None:
    target = by_name("sapphirerapids")
    parts: list[tuple[object, ...]] = [
        (), (None,), (0,), (0.0,), (-0.0,), (False,), ("0",), (b"0",), ("",), (b"",),
        ("ab", "c"), ("a", "bc"), (("a", "b"), "c"), ("a", ("b", "c")), ((),), ({},),
        (set[int](),), ({"a": "b"},), ({"b": "a"},), ({"a", "b"},), (("a", "b"),),
        (Mode.FAST,), (Mode.SMALL,), (Options(),), (Options(2),), (OtherOptions(),),
        (target,), (dataclasses.replace(target, matrix=None),),
        (dataclasses.replace(target, extensions=target.extensions - {"fma"}),),
    ]  # fmt: skip
    assert len({key(*part) for part in parts}) == len(parts)
    assert all(len(key(*part)) == 64 for part in parts)


@pytest.mark.parametrize("part", [Path("/model.onnx"), object(), Options, ([print],)])
def test_what_has_no_content_is_no_part_of_a_key(part: object) -> None:
    with pytest.raises(TypeError, match="cannot be part of a cache key"):
        key(part)


def test_a_key_is_the_same_in_every_process() -> None:
    code = "from nanoloom.cache import key; print(key({'a', 'b', 'c'}, {'d': 1.5}))"
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
        )
        assert done.stdout.strip() == key({"a", "b", "c"}, {"d": 1.5}), done.stderr


def test_a_key_has_the_versions_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key("x")
    monkeypatch.setattr(digest, "toolchain", lambda: "another nanoloom")
    assert key("x") != before and key("x") == key("x")


def test_wheels_are_found_by_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("llvmlite-0.50.0", "onnx-1.0", "onnx_ir-1.1", "numpy-2.0"):
        (tmp_path / f"{name}.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", ["/nowhere", str(tmp_path)])
    expected = tuple(
        f"{n}.dist-info" for n in ("llvmlite-0.50.0", "onnx-1.0", "onnx_ir-1.1")
    )
    assert digest._wheels() == expected  # pyright: ignore[reportPrivateUsage]


# Files


def test_file_digest_is_blake3(tmp_path: Path) -> None:
    for size in (0, 1, 70_001, 3_000_001):
        (tmp_path / "file").write_bytes(data := os.urandom(size))
        assert file_digest(tmp_path / "file") == blake3(data).hexdigest()


def test_a_digest_is_remembered_until_the_file_changes(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, reads = tmp_path / "model.onnx", list[Path]()
    of_file = digest.of_file
    monkeypatch.setattr(digest, "of_file", lambda p: (reads.append(p), of_file(p))[1])
    file.write_bytes(b"first")
    assert cache.file_digest(file) == cache.file_digest(file) and len(reads) == 2
    # So new a file may change again without a trace: it was read twice.
    later = time.time() + 60
    monkeypatch.setattr(time, "time", lambda: later)
    first = cache.file_digest(file)
    again = Cache(cache.root)
    assert again.file_digest(file) == first == of_file(file) and len(reads) == 3
    file.write_bytes(b"other")
    assert again.file_digest(file) == of_file(file) != first and len(reads) == 4
    moved = tmp_path / "moved.onnx"
    moved.write_bytes(b"third")
    os.replace(moved, file)
    assert again.file_digest(file) == of_file(file) and len(reads) == 5


# Bytes


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


# Folders


def test_a_folder_is_built_once(cache: Cache) -> None:
    assert cache.folder(A) is None
    path = cache.publish_folder(A, model())
    assert (path / "model.so").read_bytes() == b"code"
    assert (path / "data" / "parameters.bin").stat().st_size == 100
    assert cache.publish_folder(A, never) == path == cache.folder(A)
    assert Cache(cache.root).publish_folder(A, never) == path
    assert not list((cache.root / "tmp").iterdir())


def test_a_failed_build_leaves_nothing(cache: Cache) -> None:
    def fails(folder: Path) -> None:
        model()(folder)
        raise FileNotFoundError(errno.ENOENT, "no such file", str(folder / "weights"))

    with pytest.raises(FileNotFoundError, match="weights"):
        cache.publish_folder(A, fails)
    assert cache.folder(A) is None and not list((cache.root / "tmp").iterdir())
    assert cache.publish_folder(A, model()) == cache.root / "models" / A


def _cut(path: Path) -> None:
    os.truncate(path / "model.so", 3)


def _flip(path: Path) -> None:
    (path / "model.so").write_bytes(b"cove")


def _lose(path: Path) -> None:
    (path / "data" / "parameters.bin").unlink()


def _cut_manifest(path: Path) -> None:
    text = (path / files.MANIFEST).read_text()
    (path / files.MANIFEST).write_text(text[: text.rindex("\n", 0, -1) + 1])


def _garble_manifest(path: Path) -> None:
    (path / files.MANIFEST).write_bytes(b"\xff\xfe\0 1 2 3")


def _lose_manifest(path: Path) -> None:
    (path / files.MANIFEST).unlink()


@pytest.mark.parametrize(
    "damage", [_cut, _flip, _lose, _cut_manifest, _garble_manifest, _lose_manifest]
)
@pytest.mark.parametrize("looked_up", [True, False])
def test_a_damaged_folder_is_absent_and_replaced(
    cache: Cache, damage: Callable[[Path], None], looked_up: bool
) -> None:
    damage(cache.publish_folder(A, model()))
    later = Cache(cache.root)
    if looked_up:
        assert later.folder(A) is None
    path = later.publish_folder(A, model(b"new"))
    assert (path / "model.so").read_bytes() == b"new"
    assert Cache(cache.root).folder(A) == path == cache.root / "models" / A
    assert not list((cache.root / "tmp").iterdir())


def test_a_long_file_is_read_again_only_when_it_was_touched(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(folder: Path) -> None:
        with (folder / "parameters.bin").open("wb") as file:
            file.truncate(LONG)

    path = cache.publish_folder(A, build) / "parameters.bin"
    reads, of_file = list[Path](), digest.of_file
    monkeypatch.setattr(digest, "of_file", lambda p: (reads.append(p), of_file(p))[1])
    assert Cache(cache.root).folder(A) and not reads
    os.utime(path)
    assert Cache(cache.root).folder(A) and reads == [path]
    with path.open("r+b") as file:
        file.seek(LONG // 2)
        file.write(b"x")
    assert Cache(cache.root).folder(A) is None
    assert Cache(cache.root).publish_folder(A, model()) == cache.root / "models" / A


# Several processes


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

    path = Cache(root).publish_folder(A, build)
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
    assert cache.publish_folder(A, never) == cache.root / "models" / A
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
        path = kept.publish_folder(name, model(content))
        wrong += (path / "model.so").read_bytes() not in (b"1", b"2")
        _unlock(kept)
    wire.send((wrong, cache._broken))  # pyright: ignore[reportPrivateUsage]


def test_many_writes_at_once_never_show_a_half(cache: Cache) -> None:
    wires = [_start(_hammer, cache.root, content)[1] for content in (b"1", b"2")]
    assert [wire.recv() for wire in wires] == [(0, False)] * 2


def _stopped_while_writing(wire: Connection, root: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "model.so").write_bytes(b"half")
        wire.send("writing")
        time.sleep(60)

    Cache(root).publish_folder(A, build)


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
    path = cache.publish_folder(A, model())
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


# Eviction


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
    one, two = cache.publish_folder(A, model()), cache.publish_folder(B, model())
    cache.put(C, b"x" * 50)
    assert one.exists() and two.exists(), "in use by this process"
    other = Cache(tmp_path, limit_bytes=100)
    other.put(C, b"x" * 50)
    assert one.exists() and two.exists(), "locked: in use by another"


def _unlock(cache: Cache) -> None:
    """As where the file system has no locks."""
    for descriptor in cache._in_use.values():  # pyright: ignore[reportPrivateUsage]
        os.close(descriptor)


def _reads_a_model(wire: Connection, root: Path, unlocked: bool) -> None:
    cache = Cache(root)
    path = cache.folder(A)
    assert path is not None
    with (path / "model.so").open("rb") as file:
        memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    if unlocked:
        _unlock(cache)
    wire.send("mapped")
    wire.recv()
    wire.send(bytes(memory))
    wire.recv()


@pytest.mark.parametrize("unlocked", [False, True])
def test_a_reader_keeps_what_it_mapped(tmp_path: Path, unlocked: bool) -> None:
    code = b"c" * 5_000
    writer, wire = _start(_writes_a_model, tmp_path, code)
    assert wire.recv() == "done"
    _ended(writer)  # and its lock with it
    _, reader = _start(_reads_a_model, tmp_path, unlocked)
    assert reader.recv() == "mapped"
    Cache(tmp_path, limit_bytes=1_000).put(B, b"x" * 900)
    assert (tmp_path / "models" / A).exists() != unlocked
    reader.send("read")
    assert reader.recv() == code
    reader.send("end")


def _writes_a_model(wire: Connection, root: Path, code: bytes) -> None:
    Cache(root).publish_folder(A, model(code))
    wire.send("done")


# A cache that cannot be written to


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
    path = cache.publish_folder(A, model(b"m" * 5_000))
    same = cache.publish_folder(A, never) == path == cache.folder(A)
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
    assert (got, code, same, inside) == (None, b"m", True, False)
    assert len(warnings) == 1 and "Permission denied" in warnings[0]


def test_a_cache_that_is_readable_only_is_read(open_folder: Path) -> None:
    owner = Cache(open_folder / "cache")
    owner.put(A, b"kept")
    owner.publish_folder(A, model())
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
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        model(b"m" * 5_000)(folder)

    path = cache.publish_folder(A, build)
    cache.put(B, b"x" * 5_000)
    wire.send((path == builds[1], (path / "model.so").stat().st_size, warnings))
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
    assert result == (None, b"m", True, False, []) and len(caught) == 1


# Roots


def test_the_default_root_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/x/caches")
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
