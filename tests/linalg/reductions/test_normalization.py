"""Normalizations against float64, with bounds from their sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoloom.errors import ModelError, Unsupported
from tests.drawn_cases import few_examples
from tests.linalg.bounds import FLOATS, sample, wide, within
from tests.linalg.harness import evaluate
from tests.linalg.single import model_of, run_node

EPSILON = float(np.float32(1e-5))


def normal(x: np.ndarray, axes: Sequence[int], epsilon: float = EPSILON) -> np.ndarray:
    mean = x.mean(tuple(axes), keepdims=True)
    variance = ((x - mean) ** 2).mean(tuple(axes), keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon)


def steps_of(count: int) -> float:
    """Sums of `count` numbers up to 4, over a deviation not below 1; scale up to 2."""
    return 8 * count + 24


def good(got: np.ndarray, exact: np.ndarray, count: int) -> bool:
    return within(got, exact, steps_of(count), abs(exact) + 4)


@few_examples(20)
@given(
    st.sampled_from([(7,), (1, 5), (3, 7), (2, 3, 5), (2, 1, 3, 5)]),
    st.integers(-4, 3), st.sampled_from(FLOATS), st.booleans(),
)  # fmt: skip
def test_layer(shape: tuple[int, ...], place: int, name: str, biased: bool) -> None:
    axis = max(-len(shape), min(place, len(shape) - 1))
    inner = shape[axis % len(shape) :]
    x, scale = sample(1, shape, name), sample(2, inner, name, 0.5, 2)
    bias = sample(3, inner, name) if biased else None
    (got,) = run_node("LayerNormalization", [x, scale, bias], axis=axis)
    axes = range(axis % len(shape), len(shape))
    exact = normal(wide(x), axes) * wide(scale) + (wide(bias) if biased else 0)
    count = int(np.prod(inner))
    assert good(got, exact, count)
    assert not good(got + 1, exact, count)


@pytest.mark.parametrize("name", ["float32", "float16", "float64"])
def test_layer_statistics(name: str) -> None:
    x, scale = sample(4, (3, 2, 7), name), sample(5, (7,), name, 0.5, 2)
    got = run_node("LayerNormalization", [x, scale], outputs=3, epsilon=1e-3)
    mean = wide(x).mean(-1, keepdims=True)
    inverse = 1 / np.sqrt(wide(x).var(-1, keepdims=True) + float(np.float32(1e-3)))
    assert [y.dtype for y in got[1:]] == [np.float32, np.float32]
    assert within(got[1], mean, 20, 4) and within(got[2], inverse, 60)
    assert not within(got[1] + 1, mean, 20, 4)
    assert not within(0 * got[2], inverse, 60)


def test_layer_with_one_scale() -> None:
    x, scale = sample(6, (3, 7), "float32"), np.array([1.5], np.float32)
    (got,) = run_node("LayerNormalization", [x, scale], constants=[1])
    assert good(got, normal(wide(x), [1]) * 1.5, 7)


@few_examples(12)
@given(st.integers(-3, 2), st.sampled_from(FLOATS))
def test_rms(axis: int, name: str) -> None:
    x = sample(7, (2, 3, 5), name)
    inner = x.shape[axis % 3 :]
    scale = sample(8, inner, name, 0.5, 2)
    (got,) = run_node("RMSNormalization", [x, scale], axis=axis, version=23)
    axes = tuple(range(axis % 3, 3))
    square = (wide(x) ** 2).mean(axes, keepdims=True)
    exact = wide(x) / np.sqrt(square + EPSILON) * wide(scale)
    assert good(got, exact, int(np.prod(inner)))
    assert not good(got + 1, exact, int(np.prod(inner)))


@few_examples(10)
@given(
    st.sampled_from([(1, 3, 5), (2, 3, 5, 7), (2, 1, 2, 3, 2)]), st.sampled_from(FLOATS)
)
def test_instance(shape: tuple[int, ...], name: str) -> None:
    x = sample(9, shape, name)
    scale, bias = (sample(i, shape[1:2], name, 0.5, 2) for i in (10, 11))
    (got,) = run_node("InstanceNormalization", [x, scale, bias])
    full = (-1, *(1,) * (len(shape) - 2))
    exact = normal(wide(x), range(2, len(shape)))
    exact = exact * wide(scale).reshape(full) + wide(bias).reshape(full)
    assert good(got, exact, int(np.prod(shape[2:])))
    assert not good(got + 1, exact, int(np.prod(shape[2:])))


@few_examples(12)
@given(st.sampled_from([1, 2, 3, 6]), st.booleans(), st.sampled_from(FLOATS))
def test_group(groups: int, old: bool, name: str) -> None:
    """Scale and bias: one a channel, one a group before opset 21."""
    x = sample(12, (2, 6, 3, 5), name)
    scale, bias = (sample(i, (groups if old else 6,), name, 0.5, 2) for i in (13, 14))
    (got,) = run_node(
        "GroupNormalization", [x, scale, bias], num_groups=groups,
        version=18 if old else 21,
    )  # fmt: skip
    exact = normal(wide(x).reshape(2, groups, -1), [2]).reshape(x.shape)
    each = 6 // groups if old else 1
    channel = [np.repeat(wide(t), each).reshape(6, 1, 1) for t in (scale, bias)]
    exact = exact * channel[0] + channel[1]
    assert good(got, exact, 90 // groups)
    assert not good(got + 1, exact, 90 // groups)


@pytest.mark.parametrize("version", [7, 8])
def test_batch_of_each_element(version: int) -> None:
    """spatial = 0: every element of an image has numbers of its own."""
    x = sample(1, (3, 2, 4, 5), "float32")
    scale, bias, mean = (sample(s, (2, 4, 5), "float32") for s in (2, 3, 4))
    variance = sample(5, (2, 4, 5), "float32", 0.5, 2.0)
    inputs = [x, scale, bias, mean, variance]
    for constants in ((), (1, 2, 3, 4)):
        got = run_node(
            "BatchNormalization", inputs, constants=constants, version=version,
            spatial=0,
        )[0]  # fmt: skip
        factor = wide(scale) / np.sqrt(wide(variance) + np.float32(1e-5))
        right = (wide(x) - mean) * factor + bias
        size = (abs(wide(x)) + abs(wide(mean))) * abs(factor) + abs(bias)
        assert (abs(got - right) <= 8 * 2.0**-24 * size).all()
        assert not (abs(0 * got - right) <= 8 * 2.0**-24 * size).all()
    with pytest.raises(ModelError, match="expected"):
        run_node("BatchNormalization", inputs, version=version, spatial=1)


def test_groups_that_do_not_divide_are_refused() -> None:
    x, t = sample(15, (1, 5, 2), "float32"), np.ones(5, np.float32)
    with pytest.raises(ModelError, match="5 channels are not 2 equal groups"):
        run_node("GroupNormalization", [x, t, t], num_groups=2, version=21)


@few_examples(12)
@given(
    st.sampled_from([(3, 5), (2, 3, 7), (1, 3, 5, 2)]),
    st.sampled_from(["float32", "float64", "float16"]), st.booleans(),
)  # fmt: skip
def test_batch(shape: tuple[int, ...], name: str, fixed: bool) -> None:
    x = sample(16, shape, name)
    channels = (shape[1],)
    scale, bias, mean = (sample(i, channels, name, -2, 2) for i in (17, 18, 19))
    variance = sample(20, channels, name, 0.5, 3)
    (got,) = run_node(
        "BatchNormalization", [x, scale, bias, mean, variance],
        constants=[1, 2, 3, 4] if fixed else [],
    )  # fmt: skip
    full = (-1, *(1,) * (len(shape) - 2))
    s, c, m, v = (wide(t).reshape(full) for t in (scale, bias, mean, variance))
    exact = (wide(x) - m) / np.sqrt(v + EPSILON) * s + c
    assert within(got, exact, 8, abs(exact) + 20)
    assert not within(got + 1, exact, 8, abs(exact) + 20)


@pytest.mark.parametrize("axes", [None, [0], [1, 2], [-1]])
def test_mean_variance(axes: list[int] | None) -> None:
    x = sample(21, (2, 3, 5, 2), "float32")
    (got,) = run_node("MeanVarianceNormalization", [x], axes=axes, version=13)
    over = tuple(axes or (0, 2, 3))
    mean = wide(x).mean(over, keepdims=True)
    exact = (wide(x) - mean) / (wide(x).std(over, keepdims=True) + 1e-9)
    smallest = wide(x).std(over).min()
    bound = 40 * 2.0**-24 * (8 / smallest) * (1 + abs(exact))
    assert (abs(wide(got) - exact) <= bound).all()
    assert not (abs(0 * wide(got) - exact) <= bound).all()


def test_mean_variance_over_no_axes_is_over_all() -> None:
    """ONNX defines it by ReduceMean, to which no axes are all of them."""
    x = sample(21, (2, 3), "float32")
    model, feeds = model_of("MeanVarianceNormalization", [x], {}, version=13)
    empty = onnx.AttributeProto(name="axes", type=onnx.AttributeProto.INTS)
    model.graph.node[0].attribute.append(empty)
    (got,) = evaluate(model, feeds)
    exact = (wide(x) - wide(x).mean()) / (wide(x).std() + 1e-9)
    np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lp(p: int, axis: int) -> None:
    x = sample(22, (3, 5, 2), "float32")
    x[0] = 0
    x[:, 1] = 0
    (got,) = run_node("LpNormalization", [x], p=p, axis=axis)
    norm = np.linalg.norm(wide(x), p, axis, keepdims=True)
    exact = wide(x) / np.where(norm == 0, 1, norm)
    assert within(got, exact, 12)
    assert not within(0 * got, exact, 12)
    with pytest.raises(Unsupported, match="p = 3"):
        run_node("LpNormalization", [x], p=3)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_lrn(size: int) -> None:
    x = sample(23, (2, 7, 3, 2), "float32")
    given = {"alpha": 0.25, "beta": 0.5, "bias": 2.0}
    (got,) = run_node("LRN", [x], size=size, **given)
    exact = np.empty_like(wide(x))
    for c in range(7):
        low, high = max(0, c - (size - 1) // 2), c + size // 2 + 1
        squares = (wide(x)[:, low:high] ** 2).sum(1)
        exact[:, c] = wide(x)[:, c] / (2 + 0.25 / size * squares) ** 0.5
    assert within(got, exact, size + 12)
    assert not within(0 * got, exact, size + 12)
