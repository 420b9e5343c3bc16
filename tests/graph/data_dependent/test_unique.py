"""Unique: of many elements and of slices with many equal ones, beside numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawn_cases import few_examples
from tests.linalg.single import run_node

TYPES = ("float32", "float64", "int64", "int8", "uint8")


def check(x: np.ndarray, axis: int | None, is_sorted: int = 1) -> None:
    found = run_node("Unique", [x], outputs=4, version=11, axis=axis, sorted=is_sorted)
    values, first, inverse, numbers = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not is_sorted:
        order = np.argsort(first)
        values = values.take(order, 0 if axis is None else axis)
        first, numbers = first[order], numbers[order]
        inverse = np.argsort(order)[inverse]
    for mine, right in zip(found, (values, first, inverse, numbers), strict=True):
        np.testing.assert_array_equal(mine, right)


@few_examples(25)
@given(
    st.tuples(st.integers(1, 40), st.integers(1, 5), st.integers(1, 3)),
    st.sampled_from(TYPES),
    st.sampled_from((None, 0, 1, -1)),
    st.integers(0, 1),
    st.integers(0, 2**32 - 1),
)
def test_any_slices(
    shape: tuple[int, ...], name: str, axis: int | None, is_sorted: int, seed: int
) -> None:
    low = 0 if name == "uint8" else -1
    x = np.random.default_rng(seed).integers(low, 2, shape).astype(name)
    check(x, axis, is_sorted)


@pytest.mark.parametrize("shape", [(100_003,), (30_011, 3)])
def test_many(shape: tuple[int, ...]) -> None:
    """Each slice compared with each other would take minutes."""
    x = np.random.default_rng(7).integers(-20, 20, shape)
    check(x, None if len(shape) == 1 else 0)
    check((x * 2.5).astype(np.float32), None if len(shape) == 1 else 0)


def test_nan_is_one_value() -> None:
    x = np.array([np.nan, 1, -np.nan, np.inf, 1, -np.inf, np.nan, -0.0, 0], np.float32)
    found = run_node("Unique", [x], outputs=4, version=11)
    for mine, right in zip(
        found,
        ([-np.inf, -0.0, 1, np.inf, np.nan], [5, 7, 1, 3, 0],
         [4, 2, 4, 3, 2, 0, 4, 1, 1], [1, 2, 2, 1, 3]),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_array_equal(mine, np.array(right, mine.dtype))
