"""Arrays of other libraries as numpy's, in the same memory (DLPack, versions 0 and 1).

numpy reads the protocol itself, but not bfloat16.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from nanoloom.errors import InputError
from nanoloom.interface.tensor import Element

Array = np.ndarray[Any, np.dtype[Any]]
CPU, READ_ONLY = 1, 1  # kinds of a device; a bit of the flags
KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}  # numpy's letters by DLPack's type codes
BFLOAT = 4


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32),
        ("device_id", ctypes.c_int32), ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64),
    ]  # fmt: skip


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]  # fmt: skip


class Shared:
    """Holds a capsule, and with it the memory, as long as an array stands on it."""

    def __init__(self, capsule: object, interface: dict[str, Any]) -> None:
        self.capsule, self.__array_interface__ = capsule, interface


def can_share(value: object) -> bool:
    """Whether something that is no array of numpy shows its memory."""
    return hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray)


def shared_array(value: Any, where: str) -> Array:
    """An array on the memory of another library's, read-only if that is.

    Raises InputError for memory of another device, or an element type unknown here.
    """
    if getattr(value, "is_neg", bool)():
        # torch has taken it for done, and shows the memory as it is.
        reason = "has other signs than its memory"
        raise InputError(reason, where=where, hint="give tensor.resolve_neg()")
    try:
        capsule, tensor, is_fixed = opened(value)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        told = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"cannot become an array: {told}", where=where) from None
    if tensor.device != CPU:
        raise InputError(
            "is not in the CPU's memory", where=where, hint="copy it there"
        )
    size, is_bfloat = tensor.bits // 8, (tensor.code, tensor.bits) == (BFLOAT, 16)
    if tensor.lanes != 1 or not (tensor.code in KINDS or is_bfloat) or not size:
        raise InputError(
            f"has elements of DLPack's type {tensor.code} with {tensor.bits} bits",
            where=where,
            hint="convert it to an element type of numpy",
        )
    shape = tuple(tensor.shape[axis] for axis in range(tensor.rank))
    strides = None
    if tensor.strides:
        strides = tuple(tensor.strides[axis] * size for axis in range(tensor.rank))
    kind = "V" if is_bfloat else KINDS[tensor.code]
    interface = {
        "data": ((tensor.data or 0) + tensor.offset, is_fixed), "shape": shape,
        "strides": strides, "typestr": f"{'|' if size == 1 else '<'}{kind}{size}",
        "version": 3,
    }  # fmt: skip
    if 0 in shape:  # nothing to stand on
        array = np.empty(shape, f"{kind}{size}")
    else:
        array = np.asarray(Shared(capsule, interface))
    return array.view(Element.BF16.dtype) if is_bfloat else array


def opened(value: Any) -> tuple[object, Tensor, bool]:
    """The capsule, what it points to, and whether nobody may write there."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = (
        ctypes.c_void_p,
        [ctypes.py_object, ctypes.c_char_p],
    )
    try:
        capsule = value.__dlpack__(max_version=(1, 0))
    except TypeError:  # of libraries older than versions
        capsule = value.__dlpack__()
    if 'capsule object "dltensor_versioned"' in repr(capsule):
        found = Versioned.from_address(pointer(capsule, b"dltensor_versioned"))
        return capsule, found.tensor, bool(found.flags & READ_ONLY)
    return capsule, Tensor.from_address(pointer(capsule, b"dltensor")), True
