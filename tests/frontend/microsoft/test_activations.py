"""Activations against float64, and against ONNX Runtime where it has code for them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.frontend.microsoft.single import both, check, floats, run
from tests.linalg.bounds import within

Array = np.ndarray
erf = np.vectorize(math.erf, otypes=[np.float64])


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


def by_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def quick(alpha: float) -> Callable[[Array], Array]:
    return lambda x: x / (1 + np.exp(-alpha * x))


CASES: list[tuple[str, bool, dict[str, float], Callable[[Array], Array]]] = [
    ("Gelu", False, {}, gelu),
    ("BiasGelu", True, {}, gelu),
    ("FastGelu", False, {}, by_tanh),
    ("FastGelu", True, {}, by_tanh),
    ("QuickGelu", False, {}, quick(float(np.float32(1.702)))),
    ("QuickGelu", False, {"alpha": 1.0}, quick(1)),
    ("QuickGelu", False, {"alpha": 0.5}, quick(0.5)),
]


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("shape", [(7,), (2, 3, 35)])
def test_activation(case: int, shape: tuple[int, ...]) -> None:
    name, biased, attributes, formula = CASES[case]
    random = np.random.default_rng(case)
    x, bias = 3 * floats(random, *shape), floats(random, shape[-1])
    inputs = [x, bias] if biased else [x]
    ours, theirs = both(name, inputs, opset=11, **attributes)
    total = x.astype(np.float64) + (bias if biased else 0)
    check((ours[0], theirs[0]), formula(total), 40, abs(total) + 1)


def test_split_gelu() -> None:
    """ONNX Runtime has no code for it on CPUs."""
    random = np.random.default_rng(1)
    x, bias = floats(random, 2, 3, 14), floats(random, 14)
    (got,) = run("BiasSplitGelu", [x, bias])
    total = x.astype(np.float64) + bias
    exact = total[..., :7] * gelu(total[..., 7:])
    assert within(got, exact, 40, abs(total[..., :7]) * (abs(total[..., 7:]) + 1))
    assert not within(got + 1, exact, 40, abs(exact) + 1)


@pytest.mark.parametrize(
    ("axis", "shape", "inner"),
    [(3, (2, 1, 1, 5), 1), (-1, (4, 5), 0), (2, (1, 3, 4, 5), 0), (3, (1, 1, 4, 5), 0)],
)
def test_biased_softmax(axis: int, shape: tuple[int, ...], inner: int) -> None:
    """ONNX Runtime has no code for it on CPUs."""
    random = np.random.default_rng(2)
    x, bias = floats(random, 2, 3, 4, 5), floats(random, *shape)
    (got,) = run("BiasSoftmax", [x, bias], axis=axis, is_inner_broadcast=inner)
    total = np.exp(x.astype(np.float64) + bias)
    axes = tuple(range(axis % 4, 4))
    exact = total / total.sum(axes, keepdims=True)
    assert within(got, exact, 60, exact * 8)
    assert not within(got * 1.01, exact, 60, exact * 8)


@pytest.mark.parametrize("residual", [True, False])
def test_dropout_drops_nothing(residual: bool) -> None:
    random = np.random.default_rng(3)
    x, bias, other = floats(random, 3, 7), floats(random, 7), floats(random, 3, 7)
    inputs = [x, bias, other] if residual else [x, bias]
    (got,) = run("BiasDropout", inputs, opset=12)
    exact = x.astype(np.float64) + bias + (other if residual else 0)
    assert within(got, exact, 3, abs(x) + abs(bias) + abs(other))
