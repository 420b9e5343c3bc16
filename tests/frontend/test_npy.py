"""Arrays from .npy files: mapped, never unpickled, damage told in one sentence."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanoloom.errors import InputError
from nanoloom.frontend.npy import load_npy

NUMBERS = np.random.default_rng(0).standard_normal((7, 5)).astype(np.float32)


def content(array: np.ndarray, **options: bool) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def write(folder: Path, data: bytes) -> Path:
    path = folder / "x.npy"
    path.write_bytes(data)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_npy(path)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(f"{path}: ")
    return text


@pytest.mark.parametrize(
    "array",
    [
        NUMBERS,
        NUMBERS.T,
        np.asfortranarray(NUMBERS),
        np.array(3),
        np.zeros((0, 4), np.int8),
        NUMBERS > 0,
        NUMBERS.astype(">f8"),
        NUMBERS.astype(np.complex64).reshape(1, 7, 5, 1),
    ],
)
def test_arrays(array: np.ndarray, tmp_path: Path) -> None:
    got = load_npy(str(write(tmp_path, content(array))))
    assert got.dtype == array.dtype and got.shape == array.shape
    np.testing.assert_array_equal(got, array)


def test_the_second_version_of_the_format(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, NUMBERS, version=(2, 0))
    np.testing.assert_array_equal(load_npy(write(tmp_path, stream.getvalue())), NUMBERS)


def header(text: str) -> bytes:
    body = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body


def shaped(shape: str, descr: str = "'<f4'") -> bytes:
    return header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}")


def archive() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, x=NUMBERS)
    return stream.getvalue()


FAULTS = {
    "empty": (b"", "is no .npy file"),
    "text": (b"1 2 3\n", "is no .npy file"),
    "archive": (archive(), "is an archive (.npz), not a .npy file"),
    "pickle": (b"\x80\x04K\x01.", "is no .npy file"),
    "objects": (
        content(np.array([{}, None]), allow_pickle=True),
        "holds pickled Python objects, which are never loaded",
    ),
    "records": (content(np.zeros(3, [("a", "i4")])), "holds records"),
    "cut off": (content(NUMBERS)[:-1], "is cut off: its array needs 140 bytes, 139"),
    "only a header": (
        content(NUMBERS)[:128],
        "is cut off: its array needs 140 bytes, 0",
    ),
    "half a header": (content(NUMBERS)[:60], "has a damaged header"),
    "only the mark": (b"\x93NUMPY", "has a damaged header"),
    "version": (b"\x93NUMPY\x09\x00" + b"\0" * 99, "is of .npy version 9.0"),
    "huge": (shaped(f"({2**60},)"), "is cut off: its array needs 4611686018427387904"),
    "negative": (shaped("(-1, 4)"), "has the impossible shape (-1, 4)"),
    "nonsense": (header("{1: 2}"), "has a damaged header"),
    "code": (header("__import__('os').getcwd()"), "has a damaged header"),
    "type": (shaped("(1,)", "'<q9'"), "has a damaged header"),
    "deep": (header("(" * 900), "has a damaged header"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str, tmp_path: Path) -> None:
    data, words = FAULTS[name]
    assert words in refusal(write(tmp_path, data))


def test_files(tmp_path: Path) -> None:
    assert "no such input file" in refusal(tmp_path / "x.npy")
    assert "is a directory" in refusal(tmp_path)
    os.mkfifo(tmp_path / "pipe.npy")
    assert "is a pipe or a device" in refusal(tmp_path / "pipe.npy")


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_damaged_anywhere(tmp_path_factory: pytest.TempPathFactory, data) -> None:
    damaged = bytearray(content(NUMBERS))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(6, 127))] = data.draw(st.integers(0, 255))
    path = write(tmp_path_factory.getbasetemp(), bytes(damaged))
    try:
        load_npy(path)
    except InputError as error:
        assert "\n" not in str(error)
