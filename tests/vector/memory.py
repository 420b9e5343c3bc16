"""Arrays that end where the process's memory ends: a byte too far is a crash.

Kernels may read and write what they were given and nothing else, not even bytes that
would not matter.  A page without any rights behind the last byte proves it.
"""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
PAGE = mmap.PAGESIZE
NO_RIGHTS = 0
BEFORE = 0xA5  # bytes in front of the array, to be found unchanged


class Guarded:
    """An array whose last byte lies in front of a page that cannot be touched."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        pages = -(-size // PAGE) + 1
        self._map = mmap.mmap(-1, (pages + 1) * PAGE)
        whole = np.frombuffer(self._map, np.uint8)
        guard = whole.ctypes.data + pages * PAGE
        if _LIBC.mprotect(guard, PAGE, NO_RIGHTS) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
        self._front = whole[: pages * PAGE - size]
        self._front[:] = BEFORE
        self._bytes = whole[pages * PAGE - size : pages * PAGE]
        self._bytes[:] = 0xFF  # NaN in every float type, -1 in every integer
        self.array = self._bytes.view(dtype).reshape(shape)

    @classmethod
    def of(cls, array: np.ndarray) -> Guarded:
        """A guarded copy."""
        made = cls(array.shape, array.dtype)
        made.array[...] = array
        return made

    @property
    def address(self) -> int:
        return self._bytes.__array_interface__["data"][0] if self._bytes.size else 0

    def is_front_intact(self) -> bool:
        """Whether the bytes in front of the array are as they were."""
        return bool((self._front == BEFORE).all())
