"""A block of parameters in memory: the file's bytes, read-only, aligned."""

from __future__ import annotations

import mmap
import re
from pathlib import Path

import numpy as np
import pytest

from nanoloom.errors import Error
from nanoloom.runtime.parameters import HUGE_PAGE, load_parameters


@pytest.mark.parametrize("size", [1, 4096, HUGE_PAGE - 1, HUGE_PAGE, 3 * HUGE_PAGE + 7])
def test_the_bytes_of_the_file(tmp_path: Path, size: int) -> None:
    wanted = np.random.default_rng(0).integers(0, 256, size, np.uint8)
    file = tmp_path / "parameters.bin"
    wanted.tofile(file)
    block = load_parameters(file, size)
    np.testing.assert_array_equal(block, wanted)
    assert block.ctypes.data % 64 == 0
    assert not block.flags.writeable


def test_a_large_block_may_lie_on_huge_pages(tmp_path: Path) -> None:
    file = tmp_path / "parameters.bin"
    file.write_bytes(bytes(2 * HUGE_PAGE))
    block = load_parameters(file, 2 * HUGE_PAGE)
    mappings = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", smaps(), flags=re.MULTILINE)
    (mine,) = (x for x in mappings if x and holds(x, block.ctypes.data))
    assert mine.split()[1] == "rw-p"  # private: Linux gives shared memory none
    asked = re.search(r"^VmFlags:.* hg\b", mine, re.MULTILINE)
    assert asked or not Path("/sys/kernel/mm/transparent_hugepage").exists()


def smaps() -> str:
    return Path("/proc/self/smaps").read_text()


def holds(mapping: str, place: int) -> bool:
    first, last = (int(x, 16) for x in mapping.split()[0].split("-"))
    return first <= place < last


def test_a_system_without_huge_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux may refuse the wish where libc's headers know it."""
    file = tmp_path / "parameters.bin"
    file.write_bytes(bytes(range(256)) * (HUGE_PAGE // 256))
    monkeypatch.setattr(mmap, "MADV_HUGEPAGE", 0x7FFF)
    assert load_parameters(file, HUGE_PAGE)[-1] == 255


@pytest.mark.parametrize("size", [4096, HUGE_PAGE])
def test_a_file_that_ends_too_early(tmp_path: Path, size: int) -> None:
    file = tmp_path / "parameters.bin"
    file.write_bytes(bytes(size))
    with pytest.raises(Error, match="ends too early"):
        load_parameters(file, size + 1)
