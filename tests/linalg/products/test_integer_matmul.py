"""MatMulInteger and QLinearMatMul: every integer exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoloom.errors import Unsupported
from tests.drawn_cases import few_examples
from tests.linalg.bounds import sample
from tests.linalg.single import run_node

SHAPES = [
    ((3, 7), (7, 5)), ((1, 5), (5, 1)), ((2, 3, 7), (7, 5)), ((3, 7), (2, 7, 5)),
    ((2, 1, 3, 7), (3, 7, 2)), ((7,), (7, 5)), ((3, 7), (7,)), ((7,), (7,)),
    ((2, 3, 7), (7,)), ((7,), (2, 7, 5)),
]  # fmt: skip
BYTES = ("int8", "uint8")


def points(
    seed: int, grain: str, x: np.ndarray, place: int, name: str
) -> np.ndarray | None:
    """A zero point: none, a scalar, a vector over rows or columns, or with ones."""
    if grain == "none":
        return None
    if grain == "one" or x.ndim == 1:
        return sample(seed, (), name, -9, 200)
    if grain == "vector":
        return sample(seed, (x.shape[place],), name, -9, 200)
    shape = list(x.shape)
    shape[-3 - place] = 1  # what is summed: -1 of the left, -2 of the right operand
    return sample(seed, tuple(shape), name, -9, 200)


def shifted(x: np.ndarray, zero: np.ndarray | None, place: int) -> np.ndarray:
    if zero is None:
        return x.astype(np.int64)
    if zero.ndim == 1:
        zero = zero.reshape((-1, 1) if place == -2 else (1, -1))
    return x.astype(np.int64) - zero


GRAIN = st.sampled_from(["none", "one", "vector", "full"])


@few_examples(40)
@given(
    st.sampled_from(SHAPES), st.sampled_from(BYTES), st.sampled_from(BYTES),
    GRAIN, GRAIN, st.booleans(),
)  # fmt: skip
def test_sums(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], left: str, right: str,
    rows: str, columns: str, fixed: bool,
) -> None:  # fmt: skip
    x, y = sample(1, shapes[0], left, -128, 255), sample(2, shapes[1], right, -128, 255)
    p, q = points(3, rows, x, -2, left), points(4, columns, y, -1, right)
    constants = [1] + ([3] if q is not None else []) if fixed else []
    (got,) = run_node("MatMulInteger", [x, y, p, q], constants=constants, version=10)
    exact = np.matmul(shifted(x, p, -2), shifted(y, q, -1))
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, exact)
    assert (got + 1 != exact).all()


@few_examples(20)
@given(
    st.sampled_from(SHAPES[:5]), st.sampled_from(BYTES), st.sampled_from(BYTES),
    st.booleans(), st.booleans(), st.booleans(),
    st.sampled_from(["float32", "float16"]),
)  # fmt: skip
def test_quantized(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], left: str, right: str,
    rows: bool, columns: bool, fixed: bool, kind: str,
) -> None:  # fmt: skip
    """One scale for all, or one a row of a and one a column of b."""
    x, y = sample(5, shapes[0], left, -128, 255), sample(6, shapes[1], right, -128, 255)
    p = points(7, "vector" if rows else "one", x, -2, left)
    q = points(8, "vector" if columns else "one", y, -1, right)
    assert p is not None and q is not None
    a = sample(9, p.shape, kind, 0.01, 0.02)
    c = sample(10, q.shape, kind, 0.01, 0.02)
    step, zero = sample(11, (), kind, 0.05, 0.09), np.array(7, left)
    inputs = [x, a, p, y, c, q, step, zero]
    constants = [1, 2, 4, 5, 6, 7] if fixed else []
    (got,) = run_node("QLinearMatMul", inputs, constants=constants, version=21)
    total = np.matmul(shifted(x, p, -2), shifted(y, q, -1))
    by_row = a.reshape(-1, 1) if a.ndim else a
    factor = (by_row * c).astype(kind) / step
    whole = np.rint(total * factor.astype(np.float64)) + 7
    limits = np.iinfo(left)
    exact = np.clip(whole, limits.min, limits.max).astype(left)
    assert got.dtype == exact.dtype
    np.testing.assert_array_equal(got, exact)


@pytest.mark.parametrize("depth", [1, 40000])
def test_sums_of_extremes_are_exact_or_wrap(depth: int) -> None:
    x = np.full((1, depth), 255, np.uint8)
    y = np.full((depth, 1), 255, np.uint8)
    (got,) = run_node("MatMulInteger", [x, y], version=10)
    exact = (255 * 255 * depth + 2**31) % 2**32 - 2**31
    assert got.tolist() == [[exact]]


def test_a_zero_point_that_fits_nothing_is_refused() -> None:
    x, y = np.ones((3, 7), np.uint8), np.ones((7, 5), np.uint8)
    with pytest.raises(Unsupported, match=r"input 2 of shape \[7\] does not fit"):
        run_node("MatMulInteger", [x, y, np.ones(7, np.uint8)], version=10)
    with pytest.raises(Unsupported, match=r"input 3 of shape \[3\] does not fit"):
        run_node("MatMulInteger", [x, y, None, np.ones(3, np.uint8)], version=10)
