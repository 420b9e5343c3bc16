"""Outputs as columns of Arrow, whose types depend on the model alone, not on the rows.

| a row's declared shape | Arrow |
|---|---|
| none | the number |
| [n] | fixed-size list |
| [n, m, ...] | fixed-shape tensor |
| [length], [length, n, ...], where data or sizes decide about the length | list |
| other shapes with sizes | struct of data and shape |
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa

from nanoloom.errors import Unsupported
from nanoloom.interface.interface import Interface
from nanoloom.scoring.ragged import Array, Column, Ragged

RowShape = Sequence[int | str]


def type_of(output: Interface, shape: RowShape) -> Any:
    """The Arrow type of an output's column.  shape: of one row.

    Raises Unsupported for element types that Arrow has not.
    """
    if output.is_text:
        if shape:
            raise Unsupported(
                "has several strings a row", where=f"output {output.name}"
            )
        return pa.string()
    try:
        kind = pa.from_numpy_dtype(output.dtype)
    except (pa.ArrowNotImplementedError, TypeError):
        reason = f"is {output.dtype.name}, which Arrow has not"
        hint = "end the model with a Cast to float32"
        raise Unsupported(reason, where=f"output {output.name}", hint=hint) from None
    if all(isinstance(n, int) for n in shape):
        sizes = [int(n) for n in shape]
        if len(sizes) < 2:
            return pa.list_(kind, sizes[0]) if sizes else kind
        return pa.fixed_shape_tensor(kind, sizes)
    if all(isinstance(n, int) for n in shape[1:]):
        for n in reversed(shape[1:]):
            kind = pa.list_(kind, int(n))
        return pa.list_(kind)
    return pa.struct({"data": pa.list_(kind), "shape": pa.list_(pa.int64())})


def arrow_of(column: Column, kind: Any, valid: Array | None) -> Any:
    """A column as an array of `type_of`; numbers stay where they are.

    valid: which rows there are, None for all.
    """
    if pa.types.is_struct(kind):
        return _structs(column, kind, valid)
    if isinstance(column, Ragged):
        return _lists(column, kind, valid)
    if isinstance(kind, pa.BaseExtensionType):
        storage = arrow_of(column.reshape(len(column), -1), kind.storage_type, valid)
        return pa.ExtensionArray.from_storage(kind, storage)
    if pa.types.is_list(kind):
        count, length = column.shape[:2]
        offsets = np.arange(count + 1, dtype=np.int64) * length
        flat = column.reshape(count * length, *column.shape[2:])
        return _lists(Ragged(flat, offsets), kind, valid)
    if pa.types.is_string(kind):
        mask = None if valid is None else ~valid
        return pa.array(column.reshape(-1), kind, mask=mask)
    return _numbers(column, kind, valid)


def _numbers(column: Array, kind: Any, valid: Array | None) -> Any:
    """An array [rows] or [rows, size, ...], as numbers or fixed-size lists."""
    bits, missing = _validity(valid)
    if pa.types.is_fixed_size_list(kind):
        flat = column.reshape(prod(column.shape[:2]), *column.shape[2:])
        inner = _numbers(flat, kind.value_type, None)
        return pa.Array.from_buffers(
            kind, len(column), [bits], missing, children=[inner]
        )
    plain = np.ascontiguousarray(column)
    if pa.types.is_boolean(kind):
        plain = np.packbits(plain, bitorder="little")
    return pa.Array.from_buffers(
        kind, len(column), [bits, pa.py_buffer(plain)], missing
    )


def _lists(column: Ragged, kind: Any, valid: Array | None) -> Any:
    bits, missing = _validity(valid)
    if column.offsets[-1] > np.iinfo(np.int32).max:
        reason = f"{column.offsets[-1]} numbers are too many for one column of lists"
        raise Unsupported(reason, hint="score fewer rows at once")
    offsets = pa.py_buffer(column.offsets.astype(np.int32))
    inner = _numbers(column.values, kind.value_type, None)
    return pa.Array.from_buffers(
        kind, len(column), [bits, offsets], missing, children=[inner]
    )


def _structs(column: Column, kind: Any, valid: Array | None) -> Any:
    if not isinstance(column, Ragged):
        column = Ragged.of(list(column), column[:0].reshape(0, *column.shape[2:]))
    count = len(column)
    shapes = [column.shape(i) for i in range(count)]
    sizes = np.array([prod(shape) for shape in shapes], np.int64)
    flat = Ragged(column.values.reshape(-1), np.cumsum([0, *sizes], dtype=np.int64))
    data = arrow_of(flat, kind.field("data").type, None)
    shape = pa.array([list(shape) for shape in shapes], kind.field("shape").type)
    bits, missing = _validity(valid)
    return pa.Array.from_buffers(kind, count, [bits], missing, children=[data, shape])


def _validity(valid: Array | None) -> tuple[Any, int]:
    """Arrow's bits, and the number of rows that are missing."""
    if valid is None or valid.all():
        return None, 0
    bits = np.packbits(valid, bitorder="little")
    return pa.py_buffer(bits), int((~valid).sum())
