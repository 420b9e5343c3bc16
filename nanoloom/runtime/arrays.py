"""Arrays as compiled code sees them: where they begin, and new ones that begin well."""

from __future__ import annotations

import ctypes
import math

import numpy as np

LINE = 64  # bytes
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400  # numpy's flags


class _Interface(ctypes.Structure):
    """PyArrayInterface, behind an array's __array_struct__, up to `data`."""

    _fields_ = (
        ("two", ctypes.c_int),
        ("rank", ctypes.c_int),
        ("kind", ctypes.c_char),
        ("element_bytes", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
    )


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)


def address_and_flags(array: np.ndarray) -> tuple[int, int]:
    """The first element's address and numpy's flags.

    A fifth of the time that `array.ctypes` and `array.flags` take: a small model runs
    for a few microseconds.
    """
    capsule = array.__array_struct__  # owns what is read
    seen = _Interface.from_address(_pointer(capsule, None))
    return seen.data or 0, seen.flags


def address(array: np.ndarray) -> int:
    """The first element's."""
    return address_and_flags(array)[0]


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """numpy.empty that begins with a line of the cache.

    A vector that is stored into two lines takes several times as long where the next
    one goes to other lines: rows of a transpose.
    """
    block = np.empty(math.prod(shape) * dtype.itemsize + LINE, np.uint8)
    start = ctypes.addressof(ctypes.c_char.from_buffer(block.data))
    return np.ndarray(shape, dtype, block, -start % LINE)
