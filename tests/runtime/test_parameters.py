"""Parameters in memory: bytes of files, read-only, mapped where they can be shared."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from nanoloom import sealed_files
from nanoloom.cache import Cache
from nanoloom.errors import Error
from nanoloom.runtime import mapping, parameters
from nanoloom.runtime.mapping import HUGE_PAGE, Mapping
from nanoloom.runtime.parameters import Weights, load_parameters, write_listed

SIZES = [1, 4096, HUGE_PAGE - 1, HUGE_PAGE, 3 * HUGE_PAGE + 7]
Way = Callable[[int, int], Mapping]
A, B = "a" * 64, "b" * 64


def bytes_of(piece: Mapping) -> bytes:
    return ctypes.string_at(piece.address, piece.size)


def numbers(size: int) -> bytes:
    return np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()


@pytest.mark.parametrize("way", [Mapping.of, Mapping.copied])
@pytest.mark.parametrize("size", SIZES)
def test_the_bytes_of_the_file(tmp_path: Path, size: int, way: Way) -> None:
    wanted = numbers(size)
    (tmp_path / "file").write_bytes(wanted + b"a seal")
    with (tmp_path / "file").open("rb") as file:
        piece = way(file.fileno(), size)
    piece.walk()
    assert bytes_of(piece) == wanted
    assert piece.address % (HUGE_PAGE if size >= HUGE_PAGE else 4096) == 0
    access, kind = kind_of(piece)
    assert access == ("r--s" if way == Mapping.of else "r--p")
    assert "hg" in kind or not Path("/sys/kernel/mm/transparent_hugepage").exists()


def kind_of(piece: Mapping) -> tuple[str, list[str]]:
    """Access and flags of the mapping that holds a piece's last byte."""
    text = Path("/proc/self/smaps").read_text()
    for each in re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", text, flags=re.MULTILINE):
        first, last = (int(x, 16) for x in (each or "0-0").split()[0].split("-"))
        if first <= piece.address + piece.size - 1 < last:
            flags = re.search(r"^VmFlags:(.*)$", each, re.MULTILINE)
            return each.split()[1], flags[1].split() if flags else []
    raise AssertionError("it is not mapped")


def test_what_is_reserved_goes(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(3 * HUGE_PAGE))

    def count() -> int:
        return len(Path("/proc/self/maps").read_text().splitlines())

    with (tmp_path / "file").open("rb") as file:
        before = count()
        for size in SIZES * 20:
            Mapping.of(file.fileno(), min(size, 3 * HUGE_PAGE))
        assert count() <= before + 2


@pytest.mark.parametrize("way", [Mapping.of, Mapping.copied])
@pytest.mark.parametrize("size", [4096, HUGE_PAGE])
def test_a_file_that_ends_too_early(tmp_path: Path, size: int, way: Way) -> None:
    (tmp_path / "file").write_bytes(bytes(size))
    with (
        (tmp_path / "file").open("rb") as file,
        pytest.raises(Error, match="too early"),
    ):
        way(file.fileno(), size + 1)


# ---- of a folder ---------------------------------------------------------------------


def filled(folder: Path, cache: Cache, large: dict[str, bytes]) -> Weights:
    """A program's folder with 100 bytes of small weights, and who makes the others."""
    folder.mkdir(exist_ok=True)
    (folder / parameters.PARAMETERS).write_bytes(numbers(100))
    places = [
        (name, 128 + i * 10**7, len(x), True)
        for i, (name, x) in enumerate(large.items())
    ]
    write_listed(folder, places)

    def write(name: str, file: BinaryIO) -> None:
        file.write(large[name])

    return Weights(cache, write)


def test_equal_weights_are_the_same_memory(tmp_path: Path) -> None:
    cache, large = (
        Cache(tmp_path / "cache"),
        {A: numbers(70_000), B: numbers(5_000_000)},
    )
    one = load_parameters(tmp_path / "one", filled(tmp_path / "one", cache, large))
    del large[B]
    two = load_parameters(tmp_path / "two", filled(tmp_path / "two", cache, large))
    assert [begin for begin, _ in one.pieces] == [0, 128, 128 + 10**7]
    assert bytes_of(one.pieces[0][1]) == numbers(100) == bytes_of(two.pieces[0][1])
    assert bytes_of(one.pieces[1][1]) == large[A]
    assert one.pieces[1][1] is two.pieces[1][1]
    files = list((tmp_path / "cache" / "weights").iterdir())
    assert sorted(f.name for f in files) == [A, B]
    sizes = sum(f.stat().st_size for f in files)
    assert sizes == 5_070_000 + 2 * sealed_files.SEAL_BYTES


def test_a_file_that_cannot_be_mapped_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapping.mmap, "MAP_SHARED", 0)  # which the system refuses
    cache, large = Cache(tmp_path / "cache"), {A: numbers(3_000_000)}
    found = load_parameters(tmp_path / "one", filled(tmp_path / "one", cache, large))
    assert bytes_of(found.pieces[1][1]) == large[A]
    assert kind_of(found.pieces[1][1])[0] == "r--p"


@pytest.mark.parametrize("how", ["flip", "cut", "lose", "folder"])
@pytest.mark.parametrize("kept", [False, True])
def test_a_damaged_weight_is_made_again(tmp_path: Path, how: str, kept: bool) -> None:
    """Whoever has mapped what was there (but for the end of the file) keeps that."""
    cache, large = Cache(tmp_path / "cache"), {A: numbers(300_000)}
    weights = filled(tmp_path / "one", cache, large)
    first = load_parameters(tmp_path / "one", weights)
    path = tmp_path / "cache" / "weights" / A
    if not kept:
        del first
    if how == "flip":
        content = bytearray(path.read_bytes())
        content[1000] ^= 1
        path.write_bytes(content)
    if how == "cut":
        os.truncate(path, 200_000)
    if how in ("lose", "folder"):
        path.unlink()
    if how == "folder":
        path.mkdir()
    again = load_parameters(tmp_path / "one", weights)
    assert bytes_of(again.pieces[1][1]) == large[A]
    assert sealed_files.is_whole(path)


PROCESS = """
import sys, time
from pathlib import Path
from nanoloom.cache import Cache
from nanoloom.runtime.parameters import load_parameters
from tests.runtime.test_parameters import A, bytes_of, filled, numbers

folder, large = Path(sys.argv[1]), {A: numbers(9_000_000)}
weights = filled(folder / sys.argv[2], Cache(folder / "cache"), large)
sys.stdin.readline()
found = load_parameters(folder / sys.argv[2], weights).pieces[1][1]
assert bytes_of(found) == large[A]
print("mapped", flush=True)
sys.stdin.readline()
smaps = Path("/proc/self/smaps").read_text().split(f"{found.address:x}-")[1]
shared = [int(x.split()[1]) for x in smaps.splitlines() if x.startswith("Pss:")][0]
print(shared, flush=True)
sys.stdin.readline()
"""


def test_processes_share_the_pages(tmp_path: Path) -> None:
    """Also those that make the same weight at the same time."""
    words = [sys.executable, "-c", PROCESS, str(tmp_path)]
    started = [
        subprocess.Popen(
            [*words, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("one", "two")
    ]
    answers: list[list[str]] = []
    for _ in range(2):
        for each in started:
            assert each.stdin is not None
            each.stdin.write("\n")
            each.stdin.flush()
        answers.append([each.stdout.readline() for each in started if each.stdout])
    for each in started:
        each.communicate("\n")
    assert answers[0] == ["mapped\n"] * 2
    kilobytes = [int(answer) for answer in answers[1]]
    assert sum(kilobytes) <= 1.2 * 9_000_000 / 1024  # each its half
    assert sum(kilobytes) >= 0.9 * 9_000_000 / 1024
    assert len(list((tmp_path / "cache" / "weights").iterdir())) == 1
