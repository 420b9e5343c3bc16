"""A program's parameters in memory, on huge pages where the system has them."""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress
from pathlib import Path

import numpy as np

from nanoloom.errors import Error

HUGE_PAGE = 2 << 20


def load_parameters(file: Path, size: int) -> np.ndarray:
    """The block's bytes, read-only.

    A large block is read into memory of its own: the pages of a file are small, and
    every run walks through all weights, so that translating addresses costs up to a
    tenth of a matrix product.  A small block stays the file's.
    """
    if file.stat().st_size < size:
        raise Error("the file of parameters ends too early", where=str(file))
    if size < HUGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.memmap(file, np.uint8, "r", shape=(size,))
    give_back_heap()
    # Private: of shared memory, mmap's default, Linux makes huge pages for nobody.
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    try:
        memory = mmap.mmap(-1, size + HUGE_PAGE, flags=private)
    except OSError:
        raise MemoryError(f"no memory for {size} bytes of parameters") from None
    whole = np.frombuffer(memory, np.uint8)
    front = -whole.ctypes.data % HUGE_PAGE
    with suppress(OSError):  # a wish: refusal costs only speed
        memory.madvise(mmap.MADV_HUGEPAGE)
    block = whole[front : front + size]
    with file.open("rb", buffering=0) as source:
        done = 0
        while done < size:
            read = source.readinto(block[done:].data)
            if not read:
                raise Error("the file of parameters ends too early", where=str(file))
            done += read
    block.flags.writeable = False
    return block


def give_back_heap() -> None:
    """What compiling has freed goes back to the system first: the peak is lower."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
    if trim is not None:
        trim(0)
