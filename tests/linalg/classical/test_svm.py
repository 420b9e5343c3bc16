"""Support vector machines of ai.onnx.ml against their definition in float64."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from nanoloom.errors import ModelError
from tests.linalg.classical.test_classical import EPS, run_ml

GAMMA, OFFSET, DEGREE = 0.25, 0.5, 2.0
PARAMETERS = [GAMMA, OFFSET, DEGREE]
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


def kernel(kind: str, x: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    products = x.astype(np.float64) @ vectors.T
    match kind:
        case "LINEAR":
            return products
        case "POLY":
            return (products * GAMMA + OFFSET) ** DEGREE
        case "RBF":
            far = ((x[:, None] - vectors[None]) ** 2).sum(-1)
            return np.exp(-GAMMA * far)
        case _:
            return np.tanh(products * GAMMA + OFFSET)


def drawn(count: int, kind: str, seed: int) -> dict[str, Any]:
    """Attributes of a classifier of so many classes, exact in f32."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 5, count).tolist()
    total, pairs = sum(sizes), count * (count - 1) // 2
    return {
        "classlabels_ints": list(range(3, 3 + count)),
        "coefficients": (rng.integers(-8, 9, total * (count - 1)) / 8).tolist(),
        "kernel_params": PARAMETERS, "kernel_type": kind,
        "rho": (rng.integers(-8, 9, pairs) / 16).tolist(),
        "support_vectors": (rng.integers(-8, 9, total * 4) / 8).tolist(),
        "vectors_per_class": sizes,
    }  # fmt: skip


def decisions(x: np.ndarray, made: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """The scores of pairs, and what their terms add up to without signs."""
    sizes, total = made["vectors_per_class"], sum(made["vectors_per_class"])
    own = np.repeat(np.arange(len(sizes)), sizes)
    weights = np.array(made["coefficients"]).reshape(-1, total)
    found = kernel(made["kernel_type"], x, np.reshape(made["support_vectors"], (-1, 4)))
    scores, terms = [], []
    for (i, j), rho in zip(
        combinations(range(len(sizes)), 2), made["rho"], strict=True
    ):
        used = np.where(own == i, weights[j - 1], np.where(own == j, weights[i], 0))
        scores.append(found @ used + rho)
        terms.append(abs(found) @ abs(used) + abs(rho))
    return np.stack(scores, 1), np.stack(terms, 1)


def winners(scores: np.ndarray, count: int) -> np.ndarray:
    votes = np.zeros((len(scores), count))
    for column, (i, j) in enumerate(combinations(range(count), 2)):
        votes[:, i] += scores[:, column] > 0
        votes[:, j] += scores[:, column] <= 0
    return votes.argmax(1)


@pytest.mark.drawn
@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("count", [2, 3, 5])
def test_classifier(count: int, kind: str) -> None:
    x = np.random.default_rng(1).standard_normal((40, 4)).astype(np.float32)
    made = drawn(count, kind, count)
    label, got = run_ml("SVMClassifier", [x], outputs=2, version=1, **made)
    scores, terms = decisions(x, made)
    bound = 64 * EPS * (1 + terms)
    assert (abs(scores) > bound).all()  # no tie that a rounding decides
    if count == 2:
        scores, bound = np.concatenate([-scores, scores], 1), np.tile(bound, 2)
    assert (abs(got - scores) <= bound).all()
    assert not (abs(0 * got - scores) <= bound).all()
    pairs = scores[:, 1:] if count == 2 else scores
    assert (label == 3 + winners(pairs, count)).all()
    assert (label != 3 + winners(-pairs, count)).any()


def coupled(first: np.ndarray, count: int) -> np.ndarray:
    """libsvm's iteration for one row; first: of each pair, that it is the first one."""
    r = np.zeros((count, count))
    for (i, j), value in zip(combinations(range(count), 2), first, strict=True):
        r[i, j], r[j, i] = value, 1 - value
    q = -r.T * r
    np.fill_diagonal(q, (r**2).sum(0))
    p = np.full(count, 1 / count)
    for _ in range(100):
        slope = q @ p
        level = p @ slope
        if abs(slope - level).max() < 0.005 / count:
            break
        for t in range(count):
            step = (level - slope[t]) / q[t, t]
            level = (level + step * (step * q[t, t] + 2 * slope[t])) / (1 + step) ** 2
            slope = (slope + step * q[t]) / (1 + step)
            p[t] += step
            p /= 1 + step
    return p


@pytest.mark.parametrize("count", [2, 3, 4, 19])
def test_probabilities(count: int) -> None:
    """Of classes, from those of pairs."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((30, 4)).astype(np.float32)
    made, pairs = drawn(count, "RBF", 10 + count), count * (count - 1) // 2
    slopes, offsets = rng.integers(-16, 0, pairs) / 8, rng.integers(-8, 9, pairs) / 8
    probabilities = {"prob_a": slopes.tolist(), "prob_b": offsets.tolist()}
    label, got = run_ml(
        "SVMClassifier", [x], outputs=2, version=1, **made, **probabilities
    )
    scores = decisions(x, made)[0]
    likely = 1 / (1 + np.exp(scores * slopes + offsets))
    right = np.stack([coupled(row, count) for row in likely])
    assert (abs(got - right) <= 256 * EPS).all()
    assert not (abs(0 * got - right) <= 256 * EPS).all()
    assert (label == 3 + winners(scores, count)).all()


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_regressor(kind: str, one_class: int) -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((20, 4)).astype(np.float32)
    vectors, weights = rng.integers(-8, 9, (7, 4)) / 8, rng.integers(-8, 9, 7) / 8
    got = run_ml(
        "SVMRegressor", [x], version=1, coefficients=weights.tolist(), n_supports=7,
        kernel_params=PARAMETERS, kernel_type=kind, one_class=one_class, rho=[0.125],
        support_vectors=vectors.reshape(-1).tolist(),
    )[0]  # fmt: skip
    found = kernel(kind, x, vectors)
    right, bound = found @ weights + 0.125, 64 * EPS * (1 + abs(found) @ abs(weights))
    assert got.shape == (20, 1)
    if one_class:
        assert (got[:, 0] == np.where(right > 0, 1, -1)).all()
    else:
        assert (abs(got[:, 0] - right) <= bound).all()
        assert not (abs(0 * right) + abs(right) <= bound).all()


def test_linear_regressor_without_vectors() -> None:
    x = np.array([[1, 2], [3, -4]], np.float32)
    given = {"coefficients": [0.5, -1.0], "rho": [0.25], "n_supports": 0}
    got = run_ml("SVMRegressor", [x], version=1, **given)[0]
    assert got.tolist() == [[-1.25], [5.75]]


def test_lists_that_do_not_fit() -> None:
    x = np.ones((2, 4), np.float32)
    made = {**drawn(3, "RBF", 0), "coefficients": [1.0, 2.0]}
    with pytest.raises(
        ModelError, match="its coefficients are 2 numbers, expected 2 x"
    ):
        run_ml("SVMClassifier", [x], outputs=2, version=1, **made)
