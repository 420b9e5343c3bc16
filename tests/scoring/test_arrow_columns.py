"""Columns of Arrow are arrays in the same memory, also in a slice of a table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from nanoloom.errors import InputError
from nanoloom.scoring.arrow_columns import column_of
from nanoloom.scoring.ragged import Ragged

FLAT = np.arange(60, dtype=np.float32)


def lists(rows: list[list[float]], kind: pa.DataType) -> pa.Array:
    return pa.array(rows, kind)


def where_it_is(array: pa.Array) -> tuple[int, int]:
    """The addresses between which an array's numbers lie."""
    data = array.buffers()[-1]
    return data.address, data.address + data.size


FIXED = pa.FixedSizeListArray.from_arrays(pa.array(FLAT), 5)
NESTED = pa.FixedSizeListArray.from_arrays(FIXED, 3)
TENSORS = pa.FixedShapeTensorArray.from_numpy_ndarray(FLAT.reshape(4, 5, 3))
EVEN = pa.ListArray.from_arrays(np.arange(0, 61, 6, dtype=np.int32), pa.array(FLAT))
CASES = {
    "numbers": (pa.array(FLAT), FLAT),
    "fixed": (FIXED, FLAT.reshape(12, 5)),
    "nested": (NESTED, FLAT.reshape(4, 3, 5)),
    "tensors": (TENSORS, FLAT.reshape(4, 5, 3)),
    "lists of one length": (EVEN, FLAT.reshape(10, 6)),
    "large lists": (EVEN.cast(pa.large_list(pa.float32())), FLAT.reshape(10, 6)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("cut", [slice(0, None), slice(1, 3), slice(2, 2)])
def test_they_stay_where_they_are(name: str, cut: slice) -> None:
    array, expected = CASES[name]
    part = array.slice(cut.start, None if cut.stop is None else cut.stop - cut.start)
    for given in (part, pa.chunked_array([part])):
        found, null = column_of(given, "x")
        if isinstance(found, Ragged):  # of no rows
            found = found.values.reshape(0, *expected.shape[1:])
        np.testing.assert_array_equal(found, expected[cut])
        assert not null.any() and len(null) == len(part)
        if len(part):
            begin, end = where_it_is(array)
            assert begin <= found.__array_interface__["data"][0] < end
            assert not found.flags.writeable


def test_a_permuted_tensor_is_a_view() -> None:
    storage = pa.FixedSizeListArray.from_arrays(pa.array(FLAT), 15)
    kind = pa.fixed_shape_tensor(pa.float32(), [5, 3], permutation=[1, 0])
    found, _ = column_of(pa.ExtensionArray.from_storage(kind, storage), "x")
    np.testing.assert_array_equal(found, FLAT.reshape(4, 5, 3).transpose(0, 2, 1))


def test_lists_of_several_lengths() -> None:
    rows = [[1.0, 2.0], [], [3.0], [4.0, 5.0, 6.0]]
    for kind in (pa.list_(pa.float32()), pa.large_list(pa.float32())):
        array = pa.array(rows, kind)
        for begin in range(4):
            found, _ = column_of(array.slice(begin), "x")
            made = [
                found.row(i) if isinstance(found, Ragged) else found[i]
                for i in range(4 - begin)
            ]
            assert [row.tolist() for row in made] == rows[begin:]


def test_tensors_of_several_shapes() -> None:
    rows = [np.arange(6.0).reshape(2, 3), np.arange(4.0).reshape(4, 1)]
    array = pa.array([{"data": r.reshape(-1), "shape": r.shape} for r in rows])
    found, _ = column_of(array, "x")
    assert isinstance(found, Ragged)
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(found.row(i), row)


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.list_(pa.int64(), 2)])
def test_rows_with_a_null_are_known(kind: pa.DataType) -> None:
    rows = [[1, 2], None, [3, None], [5, 6], [None, None]]
    for begin in range(4):
        _, null = column_of(pa.array(rows, kind).slice(begin), "x")
        assert null.tolist() == [False, True, True, False, True][begin:]
    _, null = column_of(pa.array([1, None, 3]), "x")
    assert null.tolist() == [False, True, False]


def test_copied_kinds() -> None:
    chunks = pa.chunked_array([pa.array([1, 2]), pa.array([3])])
    assert column_of(chunks, "x")[0].tolist() == [1, 2, 3]
    assert column_of(pa.chunked_array([], pa.int64()), "x")[0].shape == (0,)
    assert column_of(pa.array([True, None, False]).slice(1), "x")[0].tolist() == [
        False,
        False,
    ]
    words = pa.array(["a", "b", "a"]).dictionary_encode()
    assert column_of(words, "x")[0].tolist() == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (pa.array([1], pa.timestamp("s")), "is timestamp"),
        (pa.array([[[1], [2, 3]]], pa.list_(pa.list_(pa.int64()))), "lists of several"),
    ],
)
def test_what_is_no_array_is_refused(array: pa.Array, said: str) -> None:
    with pytest.raises(InputError, match=f"column x: .*{said}"):
        column_of(array, "column x")
