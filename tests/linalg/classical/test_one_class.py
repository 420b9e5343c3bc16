"""Classifiers of an only class, and of none: scores against zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.linalg.classical.test_classical import EPS, run_ml

X = np.array([[1.0, 2.0], [-3.0, -1.0], [0.125, 0.0], [0.5, -0.5]], np.float32)


@pytest.mark.parametrize("labels", [[], [7], [0]])
@pytest.mark.parametrize("name", ["NONE", "LOGISTIC"])
def test_linear(labels: list[int], name: str) -> None:
    """As ONNX's reference has it: the label, or 1, where the score is positive."""
    named = {"classlabels_ints": labels} if labels else {}
    label, made = run_ml(
        "LinearClassifier", [X], outputs=2, coefficients=[1.0, 1.0], intercepts=[0.0],
        post_transform=name, **named,
    )  # fmt: skip
    scores = X.sum(1, keepdims=True).astype(np.float64)
    wanted = scores if name == "NONE" else 1 / (1 + np.exp(-scores))
    assert (abs(made - wanted) <= 4 * EPS * (1 + abs(wanted))).all()
    assert label.dtype == np.int64
    assert label.tolist() == np.where(scores[:, 0] > 0, [*labels, 1][0], 0).tolist()


def test_trees() -> None:
    """Two trees that are one leaf each, as a forest fitted to one label is exported."""
    leaf: dict[str, Any] = {
        "nodes_treeids": [0, 1], "nodes_nodeids": [0, 0],
        "nodes_modes": ["LEAF", "LEAF"], "nodes_featureids": [0, 0],
        "nodes_values": [0.0, 0.0], "nodes_truenodeids": [0, 0],
        "nodes_falsenodeids": [0, 0], "class_treeids": [0, 1],
        "class_nodeids": [0, 0], "class_ids": [0, 0], "class_weights": [0.25, 0.5],
        "classlabels_int64s": [4],
    }  # fmt: skip
    label, made = run_ml("TreeEnsembleClassifier", [X], outputs=2, **leaf)
    assert label.tolist() == [4] * 4
    assert made.tolist() == [[0.75]] * 4
