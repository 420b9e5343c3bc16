"""Content as keys: values, files, and nanoloom itself."""

from __future__ import annotations

import dataclasses
import enum
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from blake3 import blake3

from nanoloom.cache import Cache, digest, file_digest, key
from nanoloom.target import by_name


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


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
    for name in ("llvmlite-0.50.0", "onnx-1.0", "onnx_ir-1.1", "numpy-2.0", "x-1"):
        (tmp_path / f"{name}.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", ["/nowhere", str(tmp_path)])
    expected = tuple(
        f"{n}.dist-info"
        for n in ("llvmlite-0.50.0", "numpy-2.0", "onnx-1.0", "onnx_ir-1.1")
    )
    assert digest._wheels() == expected  # pyright: ignore[reportPrivateUsage]


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
