"""A program's parameters in memory, on huge pages where the system has them."""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress
from pathlib import Path

import numpy as np

from nanoloom.errors import Error
from nanoloom.runtime.arrays import empty

HUGE_PAGE = 2 << 20


def load_parameters(file: Path, size: int) -> np.ndarray:
    """The block's bytes, read-only, in memory of its own.

    The pages of a file are small, and every run walks through all weights, so that
    translating addresses costs up to a tenth of a matrix product; and a mapped file
    keeps a descriptor.
    """
    if file.stat().st_size < size:
        raise Error("the file of parameters ends too early", where=str(file))
    block = room(size)
    with file.open("rb", buffering=0) as source:
        done = 0
        while done < size:
            read = source.readinto(block[done:].data)
            if not read:
                raise Error("the file of parameters ends too early", where=str(file))
            done += read
    block.flags.writeable = False
    return block


def room(size: int) -> np.ndarray:
    """New bytes that begin with a line of the cache, many of them on huge pages."""
    if size < HUGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return empty((size,), np.dtype(np.uint8))
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
    return whole[front : front + size]


def give_back_heap() -> None:
    """What compiling has freed goes back to the system first: the peak is lower."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
    if trim is not None:
        trim(0)
