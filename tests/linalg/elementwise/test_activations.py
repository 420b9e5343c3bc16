"""Activations against their formulas in float64, also where exp overflows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoloom.errors import Unsupported
from tests.drawn_cases import few_examples
from tests.linalg.bounds import FLOATS, sample, shapes, wide, within
from tests.linalg.single import run_node

Formula = Callable[[np.ndarray], np.ndarray]
erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, 0)


def elu(alpha: float) -> Formula:
    return lambda x: np.where(x > 0, x, alpha * np.expm1(x))


def celu(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, 1.5 * np.expm1(x / 1.5))


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def hard_sigmoid(x: np.ndarray) -> np.ndarray:
    return np.clip(np.float32(0.3) * x + np.float32(0.4), 0, 1).astype(np.float64)


def f32(number: float) -> float:
    """An attribute as ONNX stores it."""
    return float(np.float32(number))


def shrink(x: np.ndarray) -> np.ndarray:
    middle = np.where(x > 1.5, x - 0.75, 0)
    return np.where(x < -1.5, x + 0.75, middle)


GAMMA, ALPHA = 1.05070102214813232421875, 1.67326319217681884765625
ACTIVATIONS: list[tuple[str, dict[str, Any], Formula]] = [
    ("Celu", {"alpha": 1.5}, celu),
    ("Elu", {}, elu(1)),
    ("Elu", {"alpha": 2.5}, elu(2.5)),
    ("Gelu", {}, gelu),
    ("Gelu", {"approximate": "tanh"}, gelu_tanh),
    ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}, hard_sigmoid),
    ("HardSwish", {}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    ("LeakyRelu", {}, lambda x: np.where(x < 0, f32(0.01) * x, x)),
    ("Mish", {}, lambda x: x * np.tanh(softplus(x))),
    ("Relu", {}, lambda x: np.maximum(x, 0)),
    ("Selu", {}, lambda x: GAMMA * elu(ALPHA)(x)),
    ("Shrink", {"bias": 0.75, "lambd": 1.5}, shrink),
    ("Sigmoid", {}, sigmoid),
    ("Softplus", {}, softplus),
    ("Softsign", {}, lambda x: x / (1 + abs(x))),
    ("Swish", {}, lambda x: x * sigmoid(x)),
    ("Swish", {"alpha": 1.25}, lambda x: x * sigmoid(1.25 * x)),
    ("ThresholdedRelu", {"alpha": 1.5}, lambda x: np.where(x > 1.5, x, 0)),
]
VERSION = 28
STEPS = 12  # roundings of the longest formula, with the library's own


@pytest.mark.parametrize(
    ("op", "attributes", "formula"),
    ACTIVATIONS,
    ids=[f"{op}-{'-'.join(a)}" for op, a, _ in ACTIVATIONS],
)
def test_formulas(op: str, attributes: dict[str, Any], formula: Formula) -> None:
    for name, high in (("float32", 6), ("float32", 200), ("float64", 800)):
        x = sample(1, (3, 7), name, -high, high)
        with np.errstate(over="ignore"):
            exact = formula(wide(x))
        (got,) = run_node(op, [x], version=VERSION, **attributes)
        size = np.maximum(abs(exact), np.minimum(abs(wide(x)), 6) + 1)
        assert within(got, exact, STEPS, size), (op, name, high)
        assert not within(0 * got, exact, STEPS, size)


@few_examples(12)
@given(st.integers(0, len(ACTIVATIONS) - 1), shapes, st.sampled_from(FLOATS))
def test_types_and_shapes(which: int, shape: tuple[int, ...], name: str) -> None:
    op, attributes, formula = ACTIVATIONS[which]
    if op == "Shrink" and name == "bfloat16":  # ONNX does not allow it
        name = "float16"
    x = sample(2, shape, name)
    (got,) = run_node(op, [x], version=VERSION, **attributes)
    assert got.dtype == x.dtype
    exact = formula(wide(x))
    assert within(got, exact, STEPS, np.maximum(abs(exact), abs(wide(x)) + 1))


@few_examples(10)
@given(st.sampled_from([(), (7,), (3, 1), (2, 3, 7)]), st.booleans())
def test_prelu_slope_broadcasts(shape: tuple[int, ...], integers: bool) -> None:
    name = "int32" if integers else "float32"
    x, slope = sample(3, (2, 3, 7), name), sample(4, shape, name)
    (got,) = run_node("PRelu", [x, slope])
    np.testing.assert_array_equal(got, np.where(x < 0, x * slope, x))


def test_prelu_of_old_opsets_has_a_slope_a_channel() -> None:
    x, slope = sample(7, (2, 3, 5), "float32"), sample(8, (3,), "float32")
    (got,) = run_node("PRelu", [x, slope], version=6)
    exact = np.where(x < 0, x * slope.reshape(3, 1), x)
    np.testing.assert_array_equal(got, exact)


@pytest.mark.parametrize("name", ["int8", "uint8", "int64"])
def test_shrink_of_integers(name: str) -> None:
    x = sample(9, (40,), name, -9, 9)
    (got,) = run_node("Shrink", [x], lambd=2.5, bias=1.0)
    low = np.where(wide(x) < -2.5, wide(x) + 1, 0)
    exact = np.where(wide(x) > 2.5, wide(x) - 1, low)
    np.testing.assert_array_equal(got, exact.astype(name))


def test_relu_of_integers_and_nan() -> None:
    x = sample(5, (3, 5), "int8", -128, 127)
    np.testing.assert_array_equal(run_node("Relu", [x])[0], np.maximum(x, 0))
    assert np.isnan(run_node("Relu", [np.array([np.nan], np.float32)])[0]).all()


def test_unknown_gelu_is_refused() -> None:
    with pytest.raises(Unsupported, match=r"tested \(Gelu\).*approximate"):
        run_node("Gelu", [sample(6, (3,), "float32")], approximate="fast")
