"""Where arrays begin: numpy's own answer is the reference."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from nanoloom.runtime.arrays import LINE, address, empty

TYPES = ["bool", "int8", "float16", ml_dtypes.bfloat16, "float32", "int64"]


def read_only() -> np.ndarray:
    array = np.arange(5)
    array.flags.writeable = False
    return array


ARRAYS = {
    "a vector": np.arange(7.0),
    "a part": np.arange(40, dtype=np.int16).reshape(5, 8)[2:4],
    "every other": np.arange(40)[::2],
    "columns": np.ones((3, 4)).T,
    "not aligned": np.zeros(33, np.uint8)[1:].view(np.float32),
    "read only": read_only(),
    "a number": np.array(3.0),
    "nothing": np.zeros((0, 3)),
    "bf16": np.zeros(3, ml_dtypes.bfloat16),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_address(name: str) -> None:
    assert address(ARRAYS[name]) == ARRAYS[name].ctypes.data


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (17,), (3, 5, 7)], ids=str)
def test_new_arrays_begin_with_a_line(shape: tuple[int, ...], kind: str) -> None:
    made = empty(shape, np.dtype(kind))
    assert (made.shape, made.dtype) == (shape, np.dtype(kind))
    assert address(made) % LINE == 0 or not made.size
    assert made.flags.c_contiguous
    made[...] = 1
    assert (made.astype(np.float64) == 1).all()
