"""Outputs are columns of Arrow of a type that no row decides about."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest

from nanoloom.errors import Unsupported
from nanoloom.interface.interface import Interface
from nanoloom.scoring.arrow_columns import column_of
from nanoloom.scoring.arrow_outputs import arrow_of, type_of
from nanoloom.scoring.ragged import Array, Ragged

DTYPES = ("float32", "float64", "float16", "int8", "uint16", "int64", "bool")
VALID = np.array([True, False, True, True])


def drawn(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    return np.random.default_rng(seed).integers(0, 2, shape).astype(dtype)


def kind_of(dtype: str, shape: tuple[int | str, ...]) -> pa.DataType:
    return type_of(Interface("y", ("n", *shape), np.dtype(dtype)), shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 3)])
@pytest.mark.parametrize("valid", [None, VALID])
def test_there_and_back(
    dtype: str, shape: tuple[int, ...], valid: Array | None
) -> None:
    array = drawn((4, *shape), dtype, len(shape))
    made = arrow_of(array, kind_of(dtype, shape), valid)
    made.validate(full=True)
    back, null = column_of(made, "y")
    there = slice(None) if valid is None else valid
    np.testing.assert_array_equal(back[there], array[there])
    assert null.tolist() == ([False] * 4 if valid is None else (~valid).tolist())
    if valid is None and dtype != "bool":
        assert np.shares_memory(back, array)


@pytest.mark.parametrize("inner", [(), (2,), (2, 3)])
def test_rows_of_several_lengths(inner: tuple[int, ...]) -> None:
    kind = kind_of("float32", ("length", *inner))
    rows = [drawn((n, *inner), "float32", n) for n in (3, 0, 5, 1)]
    made = arrow_of(Ragged.of(rows, rows[0]), kind, VALID)
    made.validate(full=True)
    for i, row in enumerate(rows):
        assert made[i].as_py() == (row.tolist() if VALID[i] else None)
    even = arrow_of(np.stack([rows[0]] * 2), kind, None)
    assert even.type == made.type and even[1].as_py() == rows[0].tolist()


def test_shapes_with_several_sizes() -> None:
    kind = kind_of("float32", (2, "length", "length"))
    rows = [drawn((2, n, n), "float32", n) for n in (3, 1, 2)]
    made = arrow_of(Ragged.of(rows, rows[0]), kind, None)
    made.validate(full=True)
    found, _ = column_of(made, "y")
    assert isinstance(found, Ragged)
    assert all((found.row(i) == row).all() for i, row in enumerate(rows))
    even = arrow_of(np.stack([rows[0]] * 2), kind, None)
    assert even.type == made.type and even[1].as_py()["shape"] == [2, 3, 3]


def test_a_type_that_arrow_has_not() -> None:
    output = Interface("y", ("n",), np.dtype(ml_dtypes.bfloat16))
    with pytest.raises(Unsupported, match="output y: is bfloat16"):
        type_of(output, ())
