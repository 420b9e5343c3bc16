"""All entries are looked at once an eighth of the limit was written, by whom ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nanoloom.cache.cache_folder import Root

LIMIT, BYTES = 80_000, 2_000
Entry = tuple[float, int, str]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many entries each look found."""
    found: list[int] = []
    entries = Root.entries

    def noted(self: Root) -> Iterator[Entry]:
        seen = [*entries(self)]
        found.append(len(seen))
        return iter(seen)

    monkeypatch.setattr(Root, "entries", noted)
    return found


def put(folder: Path, number: int, limit: int = LIMIT) -> None:
    """One entry, by what a new process has."""
    Root(folder, limit).put(f"{number:064}", b"x" * BYTES)


def test_processes_count_together(tmp_path: Path, looks: list[int]) -> None:
    put(tmp_path, 0)  # there is no count yet, and no folder to keep one
    for number in range(1, 12):
        put(tmp_path, number)
    assert looks == [0, 1, 6, 11]


def test_nothing_is_over_the_limit(tmp_path: Path, looks: list[int]) -> None:
    for number in range(100):
        put(tmp_path, number)
    kept = sum(path.stat().st_size for path in (tmp_path / "kernels").iterdir())
    assert LIMIT * 3 // 4 < kept <= LIMIT + LIMIT // 8
    put(tmp_path, 100, LIMIT // 10)  # another limit is asked of the same count
    kept = sum(path.stat().st_size for path in (tmp_path / "kernels").iterdir())
    assert kept <= LIMIT // 10


@pytest.mark.parametrize("damage", [b"", b"\0" * 16, b"written\n123"])
def test_a_damaged_count_is_no_count(
    tmp_path: Path, looks: list[int], damage: bytes
) -> None:
    for number in range(3):
        put(tmp_path, number)
    before = len(looks)
    (tmp_path / "written").write_bytes(damage)
    put(tmp_path, 3)
    assert len(looks) == before + 1
    put(tmp_path, 4)
    assert len(looks) == before + 1
