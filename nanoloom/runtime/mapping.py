"""Bytes of files in memory, on huge pages where the system has them.

Python's mmap keeps a descriptor of each file, and chooses the addresses itself.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable

from nanoloom.errors import Error

HUGE_PAGE = 2 << 20
# Of Linux, on every CPU that this compiles for; `mmap` has some in later versions.
MAP_FIXED, MAP_NORESERVE = 0x10, 0x4000
MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_POPULATE_READ, MADV_COLLAPSE = 14, 15, 22, 25

_libc = ctypes.CDLL(None, use_errno=True)
_mmap = _libc.mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
    ctypes.c_long,
)  # fmt: skip
_munmap = _libc.munmap
_munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_mprotect = _libc.mprotect
_mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_madvise = _libc.madvise
_madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_FAILED = ctypes.c_void_p(-1).value


class Mapping:
    """The first bytes of a file, read-only, at `address`; they go with this object."""

    def __init__(self, size: int) -> None:
        """Addresses without memory, a huge page's first if there is a whole one."""
        assert size > 0
        self.size, self._bytes, self.address = size, _whole(size), 0
        spare = HUGE_PAGE if size >= HUGE_PAGE else 0
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
        start = _mapped(None, self._bytes + spare, 0, flags, -1)
        self.address = -(-start // HUGE_PAGE) * HUGE_PAGE if spare else start
        if front := self.address - start:
            _munmap(start, front)
        if back := spare - front:
            _munmap(self.address + self._bytes, back)

    @classmethod
    def of(cls, descriptor: int, size: int) -> Mapping:
        """Pages of the file itself: all who map it share them.

        Raises Error where the file ends earlier, OSError where the system maps none.
        """
        if os.fstat(descriptor).st_size < size:
            raise _short()
        made = cls(size)
        flags = mmap.MAP_SHARED | MAP_FIXED
        _mapped(made.address, made._bytes, mmap.PROT_READ, flags, descriptor)
        # Until walk(): a number that is looked up would bring a huge page with it.
        _madvise(made.address, made._bytes, MADV_NOHUGEPAGE)
        return made

    def walk(self) -> None:
        """Have all of it in memory, on huge pages: it is read from end to end.

        These are wishes: refusal costs only speed.  What is read for the first time
        comes on huge pages if they are wished for before.
        """
        _madvise(self.address, self._bytes, MADV_HUGEPAGE)
        _madvise(self.address, self._bytes, MADV_POPULATE_READ)
        if huge := self.size // HUGE_PAGE * HUGE_PAGE:
            _madvise(self.address, huge, MADV_COLLAPSE)  # of files that are in memory

    @classmethod
    def copied(cls, descriptor: int, size: int) -> Mapping:
        """Memory of this process alone.  Raises as `of` does."""
        made = cls(size)
        # Private: of shared memory Linux makes huge pages for nobody.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_FIXED
        both = mmap.PROT_READ | mmap.PROT_WRITE
        _mapped(made.address, made._bytes, both, flags, -1)
        _madvise(made.address, made._bytes, MADV_HUGEPAGE)
        room = memoryview((ctypes.c_char * size).from_address(made.address)).cast("B")
        done = 0
        while done < size:
            read = os.preadv(descriptor, [room[done:]], done)
            if not read:
                raise _short()
            done += read
        _mprotect(made.address, made._bytes, mmap.PROT_READ)
        return made

    def __del__(self, munmap: Callable[[int, int], int] = _munmap) -> None:
        if self.address:  # when Python ends, this module may be empty already
            munmap(self.address, self._bytes)


def _whole(size: int) -> int:
    """Bytes of whole pages."""
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


def _mapped(place: int | None, size: int, access: int, flags: int, file: int) -> int:
    made = _mmap(place, size, access, flags, file, 0)
    if made is None or made == _FAILED:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return made


def _short() -> Error:
    return Error("the file of parameters ends too early")
