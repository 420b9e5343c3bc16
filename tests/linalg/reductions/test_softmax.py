"""Softmax, LogSoftmax and Hardmax: numbers, extremes, old opsets, and their shape."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoloom.graph.stage import optimize
from nanoloom.ir import mlir
from nanoloom.linalg.operators import OPERATORS
from nanoloom.linalg.stage import lower
from tests.drawn_cases import few_examples
from tests.linalg.bounds import FLOATS, sample, wide, within
from tests.linalg.single import model_of, run_node

SHAPES = [(7,), (1, 5), (3, 1, 7), (2, 3, 5, 3), (1, 2, 3, 1, 5), (3, 0)]
SPREAD = 8.0  # of the logits: exp(x - max) inherits max - x roundings of x - max


def softmax(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    if not x.size:
        return x
    e = np.exp(x - x.max(axes, keepdims=True))
    return e / e.sum(axes, keepdims=True)


def log_softmax(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    if not x.size:
        return x
    shifted = x - x.max(axes, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axes, keepdims=True))


EXACT = {"Softmax": softmax, "LogSoftmax": log_softmax}


def steps_of(x: np.ndarray) -> float:
    """x - max, exp, n additions, a reciprocal and a product."""
    return 2 * SPREAD + max(x.shape) + 8


@few_examples(30)
@given(
    st.sampled_from(list(EXACT)), st.sampled_from(SHAPES), st.integers(-5, 4),
    st.sampled_from(FLOATS),
)  # fmt: skip
def test_numbers(op: str, shape: tuple[int, ...], place: int, name: str) -> None:
    axis = max(-len(shape), min(place, len(shape) - 1))
    x = sample(1, shape, name)
    (got,) = run_node(op, [x], axis=axis)
    exact = EXACT[op](wide(x), (axis,))
    assert got.dtype == x.dtype
    assert within(got, exact, steps_of(x), abs(exact) + (op == "LogSoftmax"))
    if x.size:
        assert not within(got - 1, exact, steps_of(x), abs(exact) + 1)


@pytest.mark.drawn
@pytest.mark.parametrize("op", EXACT)
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, -3])
def test_old_opsets_flatten(op: str, axis: int | None) -> None:
    """Before opset 13 one row is everything from `axis` on, and axis is 1."""
    x = sample(2, (2, 3, 5), "float32")
    (got,) = run_node(op, [x], axis=axis, version=11)
    first = 1 if axis is None else axis % 3
    exact = EXACT[op](wide(x), tuple(range(first, 3)))
    assert within(got, exact, steps_of(x) + 30, abs(exact) + 1)
    assert not within(0 * got - 1, exact, steps_of(x) + 30, abs(exact) + 1)


@pytest.mark.parametrize("name", ["float32", "float16", "float64"])
def test_extremes(name: str) -> None:
    inf = np.inf
    x = np.array([[60000, 59000, -60000], [-inf, 1, 1], [3, 3, 3]], name)
    (got,) = run_node("Softmax", [x])
    assert got[0].tolist() == [1, 0, 0]
    assert got[1].tolist() == [0, 0.5, 0.5]
    assert within(got[2], np.full(3, 1 / 3), 8)
    (got,) = run_node("LogSoftmax", [x])
    assert got[1, 0] == -inf
    nothing = np.full((1, 3), -inf, name)
    assert np.isnan(run_node("Softmax", [nothing])[0]).all()
    assert np.isnan(run_node("Softmax", [np.array([1, np.nan], name)])[0]).all()


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("version", [11, 13])
def test_hardmax(axis: int, version: int) -> None:
    x = sample(3, (2, 3, 5), "int8", 0, 2).astype(np.float32)
    (got,) = run_node("Hardmax", [x], axis=axis, version=version)
    first = axis % 3
    rows = x.reshape(int(np.prod(x.shape[:first])), -1) if version < 13 else x
    axis = 1 if version < 13 else axis
    exact = np.zeros_like(rows)
    np.put_along_axis(exact, rows.argmax(axis, keepdims=True), 1, axis)
    np.testing.assert_array_equal(got, exact.reshape(x.shape))
    assert got.sum() > 0


@pytest.mark.parametrize("name", ["float32", "float16"])
def test_four_generics_without_reshapes(name: str) -> None:
    """What a later stage fuses: no reshape between them, half precision nowhere."""
    import onnx_ir

    model, _ = model_of("Softmax", [sample(4, (3, 5, 7), name)], {"axis": -1})
    graph = onnx_ir.from_proto(model)
    optimize(graph, OPERATORS.keys())
    with mlir.context():
        text = str(lower(graph).module)
    assert text.count('"reduction"]') == 2
    assert "_shape" not in text
    assert text.count("arith.truncf") == (name == "float16")
