"""Reduce*, ArgMax and ArgMin against float64; integers and places exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoloom.errors import DataDependent
from tests.drawn_cases import few_examples
from tests.linalg.bounds import FLOATS, sample, wide, within
from tests.linalg.single import run_node

Reduce = Callable[..., np.ndarray]


def log_sum_exp(x: np.ndarray, **how: object) -> np.ndarray:
    return np.log(np.sum(np.exp(x), **how))  # type: ignore[call-overload]


REDUCTIONS: dict[str, Reduce] = {
    "ReduceL1": lambda x, **how: np.sum(abs(x), **how),
    "ReduceL2": lambda x, **how: np.sqrt(np.sum(x * x, **how)),
    "ReduceLogSum": lambda x, **how: np.log(np.sum(x, **how)),
    "ReduceLogSumExp": log_sum_exp,
    "ReduceMax": np.max,
    "ReduceMean": np.mean,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceSum": np.sum,
    "ReduceSumSquare": lambda x, **how: np.sum(x * x, **how),
}
INPUT_AXES = {name: 13 if name == "ReduceSum" else 18 for name in REDUCTIONS}
CASES = [
    ((2, 3, 5, 3), (1,)), ((2, 3, 5, 3), (-1,)), ((2, 3, 5, 3), (0, 2)),
    ((3, 7), (0, 1)), ((7,), (0,)), ((1, 5, 1), (1, 2)), ((1, 2, 3, 1, 5), (-2, 0, 2)),
]  # fmt: skip


def count_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    return int(np.prod([shape[a] for a in axes]))


@few_examples(40)
@given(
    st.sampled_from(list(REDUCTIONS)), st.sampled_from(CASES),
    st.sampled_from(FLOATS), st.booleans(),
)  # fmt: skip
def test_floats(
    op: str, case: tuple[tuple[int, ...], tuple[int, ...]], name: str, keep: bool
) -> None:
    shape, axes = case
    x = sample(1, shape, name, 0.25, 2)
    given = np.array(axes, np.int64)
    (got,) = run_node(op, [x, given], constants=[1], version=18, keepdims=int(keep))
    exact = np.asarray(REDUCTIONS[op](wide(x), axis=axes, keepdims=keep))
    steps = count_of(shape, axes) + 6
    assert within(got, exact, steps, abs(exact) + 1)
    assert not within(0 * got - 1, exact, steps, abs(exact) + 1)


@pytest.mark.parametrize("op", REDUCTIONS)
def test_axes_as_an_attribute_or_none(op: str) -> None:
    x = sample(2, (3, 5, 2), "float32", 0.25, 2)
    exact = REDUCTIONS[op](wide(x), axis=(0, 2), keepdims=True)
    before = INPUT_AXES[op] - 2
    (got,) = run_node(op, [x], version=before, axes=[0, 2])
    assert within(got, exact, 20, abs(exact) + 1)
    (got,) = run_node(op, [x], version=18, keepdims=0)
    everything = np.asarray(REDUCTIONS[op](wide(x)))
    assert within(got, everything, 50, abs(everything) + 1)
    (got,) = run_node(op, [x], version=18, noop_with_empty_axes=1)
    nothing = REDUCTIONS[op](wide(x)[..., None], axis=-1)
    assert within(got, nothing, 20, abs(nothing) + 1)


@few_examples(20)
@given(
    st.sampled_from(
        ["ReduceL1", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum",
         "ReduceSumSquare"]
    ),
    st.sampled_from(["int32", "int64", "uint32", "uint64"]),
)  # fmt: skip
def test_integers(op: str, name: str) -> None:
    x = sample(3, (3, 5, 2), name, -9, 9)
    axes = np.array([1], np.int64)
    (got,) = run_node(op, [x, axes], constants=[1], version=18, keepdims=0)
    exact = np.asarray(REDUCTIONS[op](x.astype(object), axis=1))
    exact = (exact % (1 << np.iinfo(name).bits)).astype(np.uint64).astype(name)
    np.testing.assert_array_equal(got, exact)


def test_integer_mean_goes_towards_zero() -> None:
    x = np.array([[-7, 0], [7, 1], [-9, -9]], np.int32)
    axes = np.array([1], np.int64)
    (got,) = run_node("ReduceMean", [x, axes], constants=[1], version=18, keepdims=0)
    assert got.tolist() == [-3, 4, -9]
    (got,) = run_node("ReduceL2", [x, axes], constants=[1], version=18, keepdims=0)
    assert got.tolist() == [7, 7, 12]


@pytest.mark.parametrize(
    ("op", "expected"),
    [("ReduceSum", 0), ("ReduceProd", 1), ("ReduceMax", -np.inf),
     ("ReduceMin", np.inf), ("ReduceMean", np.nan), ("ReduceLogSumExp", -np.inf),
     ("ReduceLogSum", -np.inf), ("ReduceL2", 0)],
)  # fmt: skip
def test_nothing_to_reduce(op: str, expected: float) -> None:
    x = np.zeros((2, 0, 3), np.float32)
    axes = np.array([1], np.int64)
    (got,) = run_node(op, [x, axes], constants=[1], version=20)
    np.testing.assert_array_equal(got, np.full((2, 1, 3), expected))


def test_bool_and_bytes() -> None:
    x, axes = sample(4, (3, 5), "bool"), np.array([1], np.int64)
    for op, exact in (("ReduceMax", x.any(1)), ("ReduceMin", x.all(1))):
        (got,) = run_node(op, [x, axes], constants=[1], version=20, keepdims=0)
        np.testing.assert_array_equal(got, exact)
    y = sample(5, (3, 5), "uint8", 0, 255)
    (got,) = run_node("ReduceMax", [y, axes], constants=[1], version=20, keepdims=0)
    np.testing.assert_array_equal(got, y.max(1))


def test_log_sum_exp_neither_overflows_nor_loses_infinity() -> None:
    x = np.array(
        [[1000, 1000, 999], [-np.inf] * 3, [np.inf, 0, 1], [-1000, -1001, -np.inf]],
        np.float32,
    )
    axes = np.array([1], np.int64)
    (got,) = run_node(
        "ReduceLogSumExp", [x, axes], constants=[1], version=18, keepdims=0
    )
    exact = np.logaddexp.reduce(wide(x), axis=1)
    assert within(got, exact, 8)


@few_examples(25)
@given(
    st.sampled_from(["ArgMax", "ArgMin"]), st.sampled_from([0, 1, -1]),
    st.booleans(), st.booleans(),
    st.sampled_from(["float32", "float16", "float64", "int8", "uint8", "int64"]),
)  # fmt: skip
def test_places(op: str, axis: int, last: bool, keep: bool, name: str) -> None:
    x = sample(6, (3, 7, 4), name, 0, 3)
    (got,) = run_node(
        op, [x], axis=axis, keepdims=int(keep), select_last_index=int(last)
    )
    find = np.argmax if op == "ArgMax" else np.argmin
    exact = find(np.flip(x, axis) if last else x, axis=axis, keepdims=keep)
    exact = x.shape[axis] - 1 - exact if last else exact
    assert got.dtype == np.int64
    np.testing.assert_array_equal(got, exact)
    assert (got != exact + 1).all()


def test_places_of_nan_and_infinity() -> None:
    inf, nan = np.inf, np.nan
    x = np.array([[1, nan, 3, nan], [-inf] * 4, [inf] * 4, [0, 0, 0, -1]], np.float32)
    for last, top, bottom in ((0, [1, 0, 0, 0], [1, 0, 0, 3]),
                              (1, [3, 3, 3, 2], [3, 3, 3, 3])):  # fmt: skip
        given = {"axis": 1, "keepdims": 0, "select_last_index": last}
        assert run_node("ArgMax", [x], **given)[0].tolist() == top
        assert run_node("ArgMin", [x], **given)[0].tolist() == bottom


def test_axes_that_depend_on_data_are_bound_or_refused() -> None:
    x, axes = sample(7, (3, 5), "float32"), np.array([1], np.int64)
    (got,) = run_node("ReduceSum", [x, axes], keepdims=0)
    assert got.shape == (3,)
    with pytest.raises(DataDependent, match=r"must be known|depends on the data"):
        run_node("ReduceSum", [x, np.zeros(2000, np.int64)], keepdims=0)


@pytest.mark.drawn
@pytest.mark.parametrize("name", ["int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("shape", [(0,), (2, 0, 3)])
def test_integers_over_no_elements(name: str, shape: tuple[int, ...]) -> None:
    """Sums 0, products 1, extremes and logarithms the ends of the type, the mean 0."""
    x, ends = np.zeros(shape, name), np.iinfo(name)
    low, high = int(ends.min), int(ends.max)
    expected = {
        "ReduceL1": 0, "ReduceL2": 0, "ReduceSum": 0, "ReduceSumSquare": 0,
        "ReduceProd": 1, "ReduceMean": 0, "ReduceMax": low, "ReduceMin": high,
        "ReduceLogSum": low, "ReduceLogSumExp": low,
    }  # fmt: skip
    axis = shape.index(0)
    for op, number in expected.items():
        version = 13 if op == "ReduceSum" else 18
        axes = np.array([axis], np.int64)
        (got,) = run_node(op, [x, axes], constants=[1], version=version)
        assert got.dtype == x.dtype and (got == number).all(), op


def test_logarithms_of_integers_stay_within_the_type() -> None:
    x = np.array([[-5, 3], [0, 0], [2, 1]], np.int64)
    axes = np.array([1], np.int64)
    given = {"constants": [1], "version": 18, "keepdims": 0}
    (got,) = run_node("ReduceLogSum", [x, axes], **given)
    lowest = np.iinfo(np.int64).min
    assert got.tolist() == [lowest, lowest, 1]
    most = np.full((1, 2), np.iinfo(np.uint64).max)
    (got,) = run_node("ReduceL2", [most, axes], **given)
    assert got.tolist() == [np.iinfo(np.uint64).max]
