"""Columns of Arrow as arrays, in the memory where they are.

| Arrow | array | copied |
|---|---|---|
| numbers | [rows] | no |
| fixed-size lists, nested too | [rows, size, ...] | no |
| tensors: Arrow's own, and those of Ray | [rows, *shape] | no |
| lists of one length in all rows | [rows, length, ...] | no |
| lists of several lengths | Ragged | no |
| tensors of several shapes (data and shape) | Ragged | no |
| booleans, strings, dictionaries, several chunks | [rows] | yes |
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from nanoloom.errors import InputError
from nanoloom.scoring.ragged import Array, Column, Ragged

NUMBERS = (pa.types.is_integer, pa.types.is_floating)
TEXTS = (pa.types.is_string, pa.types.is_large_string)


def column_of(given: Any, where: str) -> tuple[Column, Array]:
    """A column (Array or ChunkedArray) with which of its rows have a null in them.

    Arrays of Arrow's memory cannot be written.  Raises InputError for a type that is no
    array's.
    """
    array = given
    if isinstance(given, pa.ChunkedArray):
        array = given.chunk(0) if given.num_chunks == 1 else given.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # of no chunk, or too long for one
        array = pa.concat_arrays(array.chunks) if array.num_chunks else None
    if array is None:
        array = pa.array([], given.type)
    return _column(array, where)


def _column(array: Any, where: str) -> tuple[Column, Array]:
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _column(array.dictionary_decode(), where)
    if isinstance(kind, pa.BaseExtensionType):
        return _extension(array, where)
    if pa.types.is_fixed_size_list(kind):
        return _fixed(array, kind.list_size, where)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list(array, where)
    if pa.types.is_struct(kind) and {x.name for x in kind} == {"data", "shape"}:
        return _shaped(array, where)
    return _scalars(array, where), _nulls(array)


def _nulls(array: Any) -> Array:
    if not array.null_count:
        return np.zeros(len(array), bool)
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False))


def _scalars(array: Any, where: str) -> Array:
    """Numbers, whatever is in the place of nulls; strings as objects."""
    kind = array.type
    if any(is_kind(kind) for is_kind in NUMBERS):
        dtype = np.dtype(kind.to_pandas_dtype())
        data = array.buffers()[1]
        if data is None or not len(array):
            return np.zeros(len(array), dtype)
        begin = array.offset * dtype.itemsize
        found = np.frombuffer(data, dtype, len(array), begin)
        found.flags.writeable = False  # whoever else has the table
        return found
    if pa.types.is_boolean(kind):
        return array.fill_null(False).to_numpy(zero_copy_only=False)
    if any(is_kind(kind) for is_kind in TEXTS):
        return array.fill_null("").to_numpy(zero_copy_only=False)
    raise InputError(
        f"is {kind}, which no input of a model takes",
        where=where,
        hint="give numbers, booleans, strings, lists or tensors of them",
    )


def _fixed(array: Any, size: int, where: str) -> tuple[Column, Array]:
    inner = array.values.slice(array.offset * size, len(array) * size)
    found, null = _column(inner, where)
    shape = (len(array), size)
    if isinstance(found, Ragged):
        raise _nested(where)
    own = _nulls(array) | null.reshape(shape).any(axis=1)
    return found.reshape(*shape, *found.shape[1:]), own


def _list(array: Any, where: str) -> tuple[Column, Array]:
    offsets = np.asarray(array.offsets).astype(np.int64)
    begin, end = int(offsets[0]), int(offsets[-1])
    found, null = _column(array.values.slice(begin, end - begin), where)
    if isinstance(found, Ragged):
        raise _nested(where)
    offsets -= begin
    own = _nulls(array)
    if null.any():
        own[np.searchsorted(offsets, np.flatnonzero(null), side="right") - 1] = True
    lengths = np.diff(offsets)
    if len(lengths) and not own.any() and (lengths == lengths[0]).all():
        return found.reshape(len(lengths), int(lengths[0]), *found.shape[1:]), own
    return Ragged(found, offsets), own


def _extension(array: Any, where: str) -> tuple[Column, Array]:
    """Tensors; anything else is what it is stored as."""
    found, null = _column(array.storage, where)
    shape = getattr(array.type, "shape", None)
    if shape is None or isinstance(found, Ragged):
        return found, null
    made = found.reshape(len(array), *shape)
    if order := getattr(array.type, "permutation", None):
        made = made.transpose(0, *(axis + 1 for axis in order))
    return made, null


def _shaped(array: Any, where: str) -> tuple[Column, Array]:
    """Rows of flat numbers, each with its shape."""
    data, null = _column(array.field("data"), where)
    shapes, unknown = _column(array.field("shape"), where)
    if isinstance(shapes, Ragged):
        raise InputError("has tensors of several ranks", where=where)
    if not isinstance(data, Ragged):
        steps = np.arange(len(data) + 1, dtype=np.int64) * int(np.prod(data.shape[1:]))
        data = Ragged(data.reshape(-1), steps)
    own = null | unknown | _nulls(array)
    return Ragged(data.values, data.offsets, shapes.astype(np.int64)), own


def _nested(where: str) -> InputError:
    return InputError(
        "has lists of several lengths in lists",
        where=where,
        hint="give tensors: structs of data and shape",
    )
