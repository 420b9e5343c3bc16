"""Two classes with one score: what the first one's is, and which label wins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.linalg.classical.test_classical import EPS, run_ml

X = np.array([[-3.0], [-0.5], [0.25], [0.75], [2.0]], np.float32)
LEAVES = {  # x <= -1, <= 0, <= 0.5, <= 1, larger
    "positive": np.array([0.0, 0.25, 0.4, 0.625, 1.0]),
    "mixed": np.array([-2.0, 0.25, 0.4, 0.625, 1.0]),
}


def stairs(leaves: np.ndarray) -> dict[str, Any]:
    """One tree, a leaf an interval; its votes are for the first of two classes' ids."""
    limits, count = [-1.0, 0.0, 0.5, 1.0], len(leaves)
    ids, inner = list(range(2 * count - 1)), [True, False] * (count - 1) + [False]
    places = [i for i, is_inner in zip(ids, inner, strict=True) if not is_inner]
    return {
        "nodes_treeids": [0] * len(ids), "nodes_nodeids": ids,
        "nodes_modes": ["BRANCH_LEQ" if i else "LEAF" for i in inner],
        "nodes_featureids": [0] * len(ids),
        "nodes_values": [v for x in limits for v in (x, 0.0)] + [0.0],
        "nodes_truenodeids": [(i + 1) * a for i, a in zip(ids, inner, strict=True)],
        "nodes_falsenodeids": [(i + 2) * a for i, a in zip(ids, inner, strict=True)],
        "class_treeids": [0] * count, "class_nodeids": places,
        "class_ids": [0] * count, "class_weights": leaves.tolist(),
        "classlabels_int64s": [5, 9],
    }  # fmt: skip


def right(scores: np.ndarray, name: str) -> np.ndarray:
    signed = np.stack([-scores, scores], 1)
    if name == "LOGISTIC":
        return 1 / (1 + np.exp(-signed))
    if name == "SOFTMAX":
        return np.exp(signed) / np.exp(signed).sum(1, keepdims=True)
    return signed


@pytest.mark.parametrize("kind", LEAVES)
@pytest.mark.parametrize("name", ["LOGISTIC", "SOFTMAX"])
def test_votes_for_one_class(kind: str, name: str) -> None:
    """Whatever the signs of the leaves: the label is that of the larger score."""
    scores = LEAVES[kind]
    attributes = {**stairs(scores), "post_transform": name}
    label, got = run_ml("TreeEnsembleClassifier", [X], outputs=2, **attributes)
    wanted = right(scores, name)
    assert (abs(got - wanted) <= 16 * EPS).all()
    assert not (abs(0 * got - wanted) <= 16 * EPS).all()
    assert label.tolist() == np.where(scores > 0, 9, 5).tolist()


def test_untransformed_votes() -> None:
    """Never negative ones are a probability; others are as far from 0 both ways."""
    label, got = run_ml(
        "TreeEnsembleClassifier", [X], outputs=2, **stairs(LEAVES["positive"])
    )
    share = LEAVES["positive"].astype(np.float32)
    assert (got == np.stack([1 - share, share], 1)).all()
    assert label.tolist() == [5, 5, 5, 9, 9]
    label, got = run_ml(
        "TreeEnsembleClassifier", [X], outputs=2, **stairs(LEAVES["mixed"])
    )
    assert (got == right(LEAVES["mixed"].astype(np.float32), "NONE")).all()
    assert label.tolist() == [5, 9, 9, 9, 9]


def test_probit_of_votes() -> None:
    scores = np.array([0.125, 0.25, 0.4, 0.625, 0.875])
    attributes = {**stairs(scores), "post_transform": "PROBIT"}
    label, got = run_ml("TreeEnsembleClassifier", [X], outputs=2, **attributes)
    near = np.array([-1.1503, -0.6745, -0.2533, 0.3186, 1.1503])  # of the normal one
    assert (abs(got[:, 1] - near) < 5e-3).all()
    assert (got[:, 0] == -got[:, 1]).all()
    assert label.tolist() == [5, 5, 5, 9, 9]


@pytest.mark.parametrize("name", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_linear_classifier_of_one_row(name: str) -> None:
    label, got = run_ml(
        "LinearClassifier", [X], outputs=2, version=1, coefficients=[1.0],
        intercepts=[0.25], classlabels_ints=[5, 9], post_transform=name,
    )  # fmt: skip
    scores = X[:, 0].astype(np.float64) + 0.25
    assert (abs(got - right(scores, name)) <= 16 * EPS).all()
    assert label.tolist() == np.where(scores > 0, 9, 5).tolist()
