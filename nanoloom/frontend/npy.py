"""Arrays from .npy files, mapped and never unpickled."""

from __future__ import annotations

import io
import math
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from nanoloom.errors import InputError
from nanoloom.frontend.files import map_file

MAGIC = b"\x93NUMPY"
LARGEST_HEADER = 64 * 1024  # bytes; numpy itself refuses to parse more than 10000
READERS = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
}
# What tokenize, literal_eval and np.dtype raise on a header that is not numpy's.
BAD_HEADER = (
    ValueError,
    TypeError,
    KeyError,
    SyntaxError,
    TokenError,
    MemoryError,
    RecursionError,
)


def load_npy(path: Path | str) -> np.ndarray[Any, np.dtype[Any]]:
    """The array of a .npy file, read-only and mapped (nothing is read yet).

    Raises InputError if it is missing, no .npy, cut off, pickled or an archive.
    """
    path = Path(path)
    where = str(path)
    buffer = map_file(path, where, "input file", refusal=InputError)
    if buffer[: len(MAGIC)] != MAGIC:
        archive = buffer[:4] == b"PK\x03\x04"
        raise InputError(
            "is an archive (.npz), not a .npy file" if archive else "is no .npy file",
            where=where,
            hint="save one array a file with numpy.save",
        )
    shape, by_columns, dtype, start = read_header(buffer[:LARGEST_HEADER], where)
    if dtype.hasobject:
        raise InputError(
            "holds pickled Python objects, which are never loaded",
            where=where,
            hint="save an array of numbers",
        )
    if dtype.names is not None:
        raise InputError("holds records", where=where, hint="save an array of numbers")
    need = math.prod(shape) * dtype.itemsize
    if need > len(buffer) - start:
        raise InputError(
            f"is cut off: its array needs {need} bytes, {len(buffer) - start} are left",
            where=where,
            hint="save it again",
        )
    if need == 0:
        return np.empty(shape, dtype)
    flat = np.frombuffer(buffer, dtype, math.prod(shape), start)
    return flat.reshape(shape, order="F" if by_columns else "C")


def read_header(
    head: bytes, where: str
) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether columns come first, element type, offset of the data."""
    stream = io.BytesIO(head)
    try:
        version = npy_format.read_magic(stream)
        if version not in READERS:
            raise InputError(
                f"is of .npy version {version[0]}.{version[1]}",
                where=where,
                hint="save an array of numbers with numpy.save",
            )
        shape, by_columns, dtype = READERS[version](stream)
    except BAD_HEADER:
        raise InputError(
            "has a damaged header", where=where, hint="save it again with numpy.save"
        ) from None
    if any(size < 0 for size in shape) or len(shape) > 32:
        raise InputError(
            f"has the impossible shape {shape}", where=where, hint="save it again"
        )
    return shape, by_columns, dtype, stream.tell()
