"""Comparisons, logic, bits and choices: exact in every type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawn_cases import few_examples
from tests.linalg.bounds import FLOATS, INTEGERS, sample, shapes
from tests.linalg.single import run_node

COMPARISONS: dict[str, Callable[..., np.ndarray]] = {
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
}
LOGIC: dict[str, Callable[..., np.ndarray]] = {
    "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor,
}  # fmt: skip
BITS: dict[str, Callable[..., np.ndarray]] = {
    "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
}  # fmt: skip
EXTREMES = (-(2**63), 2**64 - 1)


@few_examples(15)
@given(
    st.sampled_from(list(COMPARISONS)), shapes, st.sampled_from([*FLOATS, *INTEGERS])
)
def test_comparisons(op: str, shape: tuple[int, ...], name: str) -> None:
    x, y = sample(1, shape, name, -3, 3), sample(2, shape[-1:], name, -3, 3)
    (got,) = run_node(op, [x, y])
    assert got.dtype == np.bool_
    np.testing.assert_array_equal(got, COMPARISONS[op](x, y))


@pytest.mark.parametrize("op", COMPARISONS)
def test_signs_and_nan(op: str) -> None:
    x = np.array([np.nan, np.nan, 0.0, -0.0, np.inf], np.float32)
    y = np.array([np.nan, 1, -0.0, 0.0, np.inf], np.float32)
    np.testing.assert_array_equal(run_node(op, [x, y])[0], COMPARISONS[op](x, y))
    for name in ("int8", "uint8", "int64", "uint64"):
        limits = np.iinfo(name)
        one = np.array([limits.min, limits.max, 1], name)
        other = np.array([limits.max, limits.min, 1], name)
        expected = COMPARISONS[op](one, other)
        np.testing.assert_array_equal(run_node(op, [one, other])[0], expected)


@pytest.mark.parametrize("op", [*LOGIC, "Equal"])
def test_logic(op: str) -> None:
    x, y = sample(3, (3, 1, 5), "bool"), sample(4, (2, 5), "bool")
    expected = {**LOGIC, "Equal": np.equal}[op](x, y)
    np.testing.assert_array_equal(run_node(op, [x, y])[0], expected)
    np.testing.assert_array_equal(run_node("Not", [x])[0], ~x)


@few_examples(10)
@given(st.sampled_from(list(BITS)), st.sampled_from(INTEGERS))
def test_bits(op: str, name: str) -> None:
    x, y = sample(5, (3, 7), name, *EXTREMES), sample(6, (7,), name, *EXTREMES)
    np.testing.assert_array_equal(run_node(op, [x, y])[0], BITS[op](x, y))
    np.testing.assert_array_equal(run_node("BitwiseNot", [x])[0], ~x)


@pytest.mark.parametrize("name", INTEGERS)
def test_shifts_by_any_amount(name: str) -> None:
    limits = np.iinfo(name)
    x = np.array([limits.min, limits.max, 1, 77], name).reshape(-1, 1)
    amounts = [0, 1, limits.bits - 1, limits.bits, limits.max]
    y = np.array(amounts + ([-1] if limits.min < 0 else []), name)
    left = np.zeros((4, y.size), object)
    right = np.zeros((4, y.size), object)
    for i, a in enumerate(x[:, 0].tolist()):
        for j, n in enumerate(y.tolist()):
            inside = 0 <= n < limits.bits
            left[i, j] = (a << n if inside else 0) % (1 << limits.bits)
            right[i, j] = a >> (n if inside else limits.bits)
    expected = left.astype(np.uint64).astype(name)
    (got,) = run_node("BitShift", [x, y], direction="LEFT", version=28)
    np.testing.assert_array_equal(got, expected)
    (got,) = run_node("BitShift", [x, y], direction="RIGHT", version=28)
    np.testing.assert_array_equal(got, right.astype(name))


@few_examples(12)
@given(shapes, st.sampled_from([*FLOATS, *INTEGERS, "bool"]), st.booleans())
def test_where(shape: tuple[int, ...], name: str, swapped: bool) -> None:
    c = sample(7, shape, "bool")
    x, y = sample(8, shape, name), sample(9, shape[-1:], name)
    if swapped:
        x, y = y, x
    np.testing.assert_array_equal(run_node("Where", [c, x, y])[0], np.where(c, x, y))


@pytest.mark.parametrize("name", ["float32", "float64", "float16"])
@pytest.mark.parametrize(("up", "down"), [(1, 1), (1, 0), (0, 1), (0, 0)])
def test_infinities_and_nan(name: str, up: int, down: int) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0, 3], name)
    (got,) = run_node("IsInf", [x], detect_positive=up, detect_negative=down)
    assert got.tolist() == [bool(up), bool(down), False, False, False]
    np.testing.assert_array_equal(run_node("IsNaN", [x])[0], np.isnan(x))
