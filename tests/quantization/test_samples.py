"""Samples of files and arrays: how many there are, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nanoloom.errors import InputError
from nanoloom.frontend.inputs import InputSpec
from nanoloom.quantization.samples import samples_of

F32 = np.dtype(np.float32)
X = InputSpec("x", (2, 3), F32)
OPEN = InputSpec("x", ("N", 3), F32)
PAIR = (X, InputSpec("ids", (2,), np.dtype(np.int64)))


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("spec", "shape", "count"),
    [
        (X, (2, 3), 1),
        (X, (8, 3), 4),
        (X, (5, 2, 3), 5),
        (OPEN, (7, 3), 7),
        (OPEN, (4, 2, 3), 4),
    ],
)
def test_an_array_of_many_rows(
    spec: InputSpec, shape: tuple[int, ...], count: int
) -> None:
    array = numbers(*shape)
    found = samples_of(array, [spec])
    assert len(found) == count
    parts = [each.arrays["x"].reshape(-1) for each in found]
    assert (np.concatenate(parts) == array.reshape(-1)).all()


def test_files_of_a_folder(tmp_path: Path) -> None:
    for index in range(3):
        ids = np.array([index, 1])
        np.savez(tmp_path / f"{index}.npz", x=numbers(2, 3), ids=ids)
    (tmp_path / "notes.txt").write_text("not a sample")
    found = samples_of(tmp_path, PAIR)
    assert [each.arrays["ids"][0] for each in found] == [0, 1, 2]


def test_files_of_open_size_are_one_sample_each(tmp_path: Path) -> None:
    for size in (2, 5):
        np.save(tmp_path / f"{size}.npy", numbers(size, 3))
    found = samples_of(tmp_path, [OPEN])
    assert [len(each.arrays["x"]) for each in found] == [2, 5]


def test_many_rows_of_several_inputs(tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", x=numbers(6, 2, 3), ids=np.ones((6, 2), np.int64))
    assert len(samples_of(tmp_path, PAIR)) == 6


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_names_file_and_input(tmp_path: Path, value: float) -> None:
    array = numbers(2, 3)
    array[1, 1] = value
    np.save(tmp_path / "good.npy", numbers(2, 3))
    np.save(tmp_path / "odd.npy", array)
    kind = "NaN" if np.isnan(value) else "infinite"
    with pytest.raises(InputError, match=rf"odd.npy: input x: has numbers .* {kind}"):
        samples_of(tmp_path, [X])


BAD = {
    "no.npy": (numbers(2, 4), "no.npy: input x: is float32 2x4, the model wants"),
    "type.npy": (np.ones((2, 3)), "type.npy: input x: is float64 2x3"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_names_the_file(tmp_path: Path, name: str) -> None:
    array, said = BAD[name]
    np.save(tmp_path / name, array)
    with pytest.raises(InputError, match=said):
        samples_of(tmp_path, [X])


def test_wrong_names_and_damaged_archives(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, y=numbers(2, 3))
    with pytest.raises(InputError, match=r"a.npz: inputs: x is missing and y is not"):
        samples_of(tmp_path, [X])
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(InputError, match=r"a.npz: is no archive of arrays"):
        samples_of(tmp_path, [X])


def test_one_array_for_several_inputs(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", numbers(2, 3))
    with pytest.raises(InputError, match=r"a.npy: is one array, and the model takes 2"):
        samples_of(tmp_path, PAIR)


def test_no_samples(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no samples: there is no .npy"):
        samples_of(tmp_path, [X])
    with pytest.raises(InputError, match="is not there; samples are files in a folder"):
        samples_of(tmp_path / "none", [X])
    with pytest.raises(InputError, match="there are no samples"):
        samples_of([], [X])
    with pytest.raises(InputError, match="samples: are a int"):
        samples_of(3, [X])
    with pytest.raises(InputError, match="has arrays without rows"):
        samples_of(numbers(0, 2, 3), [X])
