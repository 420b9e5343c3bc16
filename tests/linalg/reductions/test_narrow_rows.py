"""Reductions over rows that fill no vector: what several rows in one give."""

from __future__ import annotations

import numpy as np
import pytest

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.checks import Checks
from nanoloom.linalg.builder.narrow_rows import rows_of
from nanoloom.linalg.builder.tensor import Tensor
from tests.linalg.bounds import sample, wide, within
from tests.linalg.single import run_node

F32 = np.dtype(np.float32)


@pytest.mark.parametrize(
    ("shape", "axes", "made"),
    [
        ((500, 6), [0], (1, 50, 60)),
        ((3, 4, 24, 2), [1, 2], (3, 4, 48)),
        ((997, 6), [0], (1, 124, 48)),  # nothing divides it: and five rows
        ((8, 4), [0], (1, 4, 8)),
        ((7, 4), [0], None),  # too few
        ((500, 16), [0], None),  # full as they are
        ((500, 6), [1], None),
        ((4, 5, 6), [0, 2], None),  # apart
    ],
)
def test_how_many_rows_are_one(
    shape: tuple[int, ...], axes: list[int], made: tuple[int, ...] | None
) -> None:
    def found(is_open: bool) -> tuple[int, ...] | None:
        b = Builder(lambda x: x.value, Checks(is_open=is_open))  # type: ignore[arg-type, return-value] - no constant is made
        rows = rows_of(b, Tensor(shape, F32), axes)
        return rows and rows.made

    assert found(False) == made
    assert found(True) is None


FOLDS = {"Max": np.max, "Min": np.min, "Sum": np.sum, "Prod": np.prod}


@pytest.mark.parametrize("name", ["float32", "float16", "int32", "int64"])
@pytest.mark.parametrize("op", FOLDS)
@pytest.mark.parametrize("extent", [24, 29])
def test_folds(op: str, name: str, extent: int) -> None:
    x = sample(1, (2, extent, 3), name, -2, 3)
    (got,) = run_node(f"Reduce{op}", [x, np.array([1])], constants=[1], version=20)
    if name.startswith("int"):
        exact = FOLDS[op](x.astype(np.int64), axis=1, keepdims=True)
        np.testing.assert_array_equal(got, exact.astype(x.dtype))
        return
    exact = FOLDS[op](wide(x), axis=1, keepdims=True)
    assert within(got, exact, 26)
    assert not within(got + 1, exact, 26)


@pytest.mark.parametrize("op", ["Max", "Min"])
def test_extremes_keep_nan_and_signed_zeros(op: str) -> None:
    x = np.full((29, 3), -1 if op == "Max" else 1, np.float32)
    x[28, 0], x[9, 1], x[28, 1], x[5, 2] = np.nan, -0.0, 0.0, np.inf
    (got,) = run_node(f"Reduce{op}", [x, np.array([0])], constants=[1], version=20)
    assert np.isnan(got[0, 0])
    least = 0.0 if op == "Max" else -0.0
    assert got[0, 1].tobytes() == np.float32(least).tobytes()
    assert got[0, 2] == (np.inf if op == "Max" else 1)


@pytest.mark.parametrize("extent", [24, 29])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax(op: str, extent: int) -> None:
    x = sample(3, (2, extent, 3), "float32", -9, 9)
    x[0, 5, 1], x[1, :, 2], x[1, 3, 0] = np.nan, -np.inf, np.inf
    x[1, 4, 2] = 3
    (got,) = run_node(op, [x], version=13, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        shifted = wide(x) - np.nanmax(wide(x), axis=1, keepdims=True)
        exact = np.exp(shifted) / np.exp(shifted).sum(1, keepdims=True)
        exact = exact if op == "Softmax" else np.log(exact)
    np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-6)
    assert not np.allclose(got, 0, atol=1e-3, equal_nan=True)


@pytest.mark.parametrize("largest", [True, False])
def test_places(largest: bool) -> None:
    x = sample(5, (29, 3), "float32", -2, 3).round()
    op, found = ("ArgMax", np.argmax) if largest else ("ArgMin", np.argmin)
    (got,) = run_node(op, [x], version=13, axis=0, keepdims=0)
    np.testing.assert_array_equal(got, found(x, axis=0))


@pytest.mark.parametrize("extent", [12, 37])
def test_powers_of_columns(extent: int) -> None:
    """Exponents of a row that fills no vector are repeated in one that does."""
    x = sample(6, (2, extent, 3), "float32", 0.1, 3)
    y = np.array([[-1.5, 0.5, 2.25]], np.float32)
    (got,) = run_node("Pow", [x, y], version=15)
    np.testing.assert_allclose(got, wide(x) ** y, rtol=1e-6)


@pytest.mark.parametrize("shape", [(13, 5, 3), (1, 40, 1), (3, 7), ()])
def test_ranges_of_short_rows(shape: tuple[int, ...]) -> None:
    """Rows that fill no vector are one with those before them."""
    x = np.asarray(sample(8, shape, "float32", -3, 5))
    y, scale, zero = run_node("DynamicQuantizeLinear", [x], outputs=3)
    low, high = min(0.0, float(x.min())), max(0.0, float(x.max()))
    np.testing.assert_allclose(scale, (high - low) / 255, rtol=1e-6)
    assert zero == round(-low / float(scale))
    assert y.shape == shape and abs((y - float(zero)) * scale - x).max() <= scale
