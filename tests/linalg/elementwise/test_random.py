"""Random tensors: the generator itself, distributions, seeds, and repetition."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from nanoloom.linalg.elementwise.random import mixed
from tests.linalg.bounds import dtype_of
from tests.linalg.single import run_node

COUNT = 20000
SIX = 6.0  # standard errors: a right generator fails once in 500 million seeds


def uniform(seed: float | None = 1.0, **attributes: object) -> np.ndarray:
    return run_node("RandomUniform", [], shape=[COUNT], seed=seed, **attributes)[0]


def test_the_finalizer_is_splitmix64() -> None:
    """The first outputs for seed 1234567, as its authors publish them."""
    state, wide = 1234567, (1 << 64) - 1
    made = []
    for _ in range(3):
        state = (state + 0x9E3779B97F4A7C15) & wide
        made.append(mixed(state))
    assert made == [
        6457827717110365317, 3203168211198807973, 9817491932198370423,
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["float32", "float64", "float16"])
def test_uniform(name: str) -> None:
    kind = getattr(TensorProto, {"float64": "DOUBLE", "float32": "FLOAT"}.get(
        name, "FLOAT16"
    ))  # fmt: skip
    x = uniform(low=-1.0, high=3.0, dtype=kind)
    assert x.dtype == dtype_of(name)
    assert x.min() >= -1 and x.max() <= 3
    y = (x.astype(np.float64) + 1) / 4
    assert abs(y.mean() - 0.5) < SIX * (1 / 12 / COUNT) ** 0.5
    counts = np.histogram(y, 16, (0, 1))[0]
    assert (abs(counts - COUNT / 16) < SIX * (COUNT / 16) ** 0.5).all()
    pairs = np.corrcoef(y[:-1], y[1:])[0, 1]
    assert abs(pairs) < SIX / COUNT**0.5
    assert len(np.unique(y)) > (1000 if name == "float16" else 0.99 * COUNT)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_normal(name: str) -> None:
    like = np.zeros((COUNT // 50, 50), name)
    (x,) = run_node("RandomNormalLike", [like], mean=2.0, scale=3.0, seed=4.0)
    assert x.shape == like.shape and x.dtype == like.dtype
    y = (x.astype(np.float64).reshape(-1) - 2) / 3
    assert abs(y.mean()) < SIX / COUNT**0.5
    assert abs(y.var() - 1) < SIX * (2 / COUNT) ** 0.5
    assert abs((y**3).mean()) < SIX * (15 / COUNT) ** 0.5
    assert abs((y**4).mean() - 3) < SIX * (96 / COUNT) ** 0.5
    assert np.isfinite(y).all()


def test_seeds_choose_streams_and_calls_repeat() -> None:
    np.testing.assert_array_equal(uniform(7.0), uniform(7.0))
    np.testing.assert_array_equal(uniform(None), uniform(None))
    streams = [uniform(s) for s in (7.0, 8.0, None)]
    for i in range(3):
        for j in range(i):
            pairs = np.corrcoef(streams[i], streams[j])[0, 1]
            assert abs(pairs) < SIX / COUNT**0.5


@pytest.mark.parametrize("name", ["float32", "float64", "float16"])
def test_bernoulli(name: str) -> None:
    p = np.repeat(np.array([0, 0.25, 0.5, 1], name), COUNT // 4).reshape(4, -1)
    (x,) = run_node("Bernoulli", [p], seed=2.0, dtype=TensorProto.INT32)
    assert x.dtype == np.int32
    assert set(np.unique(x)) == {0, 1}
    expected = np.array([0, 0.25, 0.5, 1])
    error = (expected * (1 - expected) / (COUNT / 4)) ** 0.5
    assert (abs(x.mean(1) - expected) <= SIX * error).all()
    (y,) = run_node("Bernoulli", [p], seed=2.0)
    np.testing.assert_array_equal(y, x.astype(name))


def test_multinomial() -> None:
    p = np.array([[0.5, 0, 0.25, 0.25], [0, 1, 0, 0], [0.1, 0.2, 0.3, 0.4]])
    with np.errstate(divide="ignore"):
        logits = (np.log(p) + np.array([[5], [-3], [0]])).astype(np.float32)
    draws = COUNT // 4
    (x,) = run_node(
        "Multinomial", [logits], sample_size=draws, seed=1.0, dtype=TensorProto.INT64
    )
    assert x.shape == (3, draws) and x.dtype == np.int64
    share = np.stack([np.bincount(row, minlength=4) / draws for row in x])
    assert (abs(share - p) <= SIX * (p * (1 - p) / draws) ** 0.5 + 1e-12).all()
