"""Decision trees of ai.onnx.ml against ONNX's reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from nanoloom.errors import Unsupported
from tests.drawn_cases import few_examples
from tests.linalg.classical.test_classical import EPS, ML, run_ml
from tests.linalg.single import Arrays, model_of


def reference(
    op: str, inputs: Arrays, version: int = 3, outputs: int = 1, **attributes: Any
) -> list[np.ndarray]:
    model, feeds = model_of(
        op, inputs, attributes, version=version, domain=ML, outputs=outputs
    )
    return list(ReferenceEvaluator(model).run(None, feeds))


def forest(trees: int, depth: int, columns: int, seed: int) -> dict[str, Any]:
    """Full random trees in the attributes of the older operators, and their leaves."""
    r = np.random.default_rng(seed)
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ",
             "BRANCH_NEQ"]  # fmt: skip
    rows = [
        (t, i, r.choice(modes) if i < 2**depth - 1 else "LEAF")
        for t in range(trees)
        for i in range(2 ** (depth + 1) - 1)
    ]
    inner = [mode != "LEAF" for _, _, mode in rows]
    return {
        "nodes_treeids": [t for t, _, _ in rows],
        "nodes_nodeids": [i for _, i, _ in rows],
        "nodes_modes": [str(mode) for _, _, mode in rows],
        "nodes_featureids": r.integers(0, columns, len(rows)).tolist(),
        "nodes_values": r.integers(-2, 3, len(rows)).astype(float).tolist(),
        "nodes_truenodeids": [2 * i + 1 if a else 0 for (_, i, _), a in
                              zip(rows, inner, strict=True)],
        "nodes_falsenodeids": [2 * i + 2 if a else 0 for (_, i, _), a in
                               zip(rows, inner, strict=True)],
        "nodes_missing_value_tracks_true": r.integers(0, 2, len(rows)).tolist(),
    }  # fmt: skip


def leaf_votes(nodes: dict[str, Any], name: str, targets: int) -> dict[str, Any]:
    r = np.random.default_rng(1)
    rows = [
        (t, i) for t, i, mode in zip(nodes["nodes_treeids"], nodes["nodes_nodeids"],
                                     nodes["nodes_modes"], strict=True)
        if mode == "LEAF"
    ]  # fmt: skip
    return {
        f"{name}_treeids": [t for t, _ in rows],
        f"{name}_nodeids": [i for _, i in rows],
        f"{name}_ids": r.integers(0, targets, len(rows)).tolist(),
        f"{name}_weights": (r.integers(1, 64, len(rows)) / 8).tolist(),
    }


def features(rows: int) -> np.ndarray:
    x = np.random.default_rng(rows).integers(-2, 3, (rows, 4)).astype(np.float32)
    x[::5, 1] = np.nan
    return x


@given(st.integers(1, 4), st.integers(0, 4), st.sampled_from(["SUM", "AVERAGE"]))
@few_examples(10)
def test_tree_regressor(trees: int, depth: int, how: str) -> None:
    nodes = forest(trees, depth, 4, trees + 10 * depth)
    given_votes = leaf_votes(nodes, "target", 2)
    x = features(17)
    attributes = {
        **nodes,
        **given_votes,
        "n_targets": 2,
        "aggregate_function": how,
        "base_values": [0.5, -4.0],
    }
    got = run_ml("TreeEnsembleRegressor", [x], **attributes)[0]
    right = reference("TreeEnsembleRegressor", [x], **attributes)[0]
    bound = 8 * EPS * 36  # four votes of 8 and a base value of 4, each added once
    assert (abs(got - right) <= bound).all()
    assert not (abs(0 * got - right) <= bound).all()


@pytest.mark.parametrize("how", ["MIN", "MAX"])
def test_tree_regressor_takes_extremes(how: str) -> None:
    nodes = forest(3, 2, 4, 5)
    votes = leaf_votes(nodes, "target", 1)
    attributes = {**nodes, **votes, "n_targets": 1, "aggregate_function": how}
    got = run_ml("TreeEnsembleRegressor", [features(9)], **attributes)[0]
    assert (
        got == reference("TreeEnsembleRegressor", [features(9)], **attributes)[0]
    ).all()


@pytest.mark.parametrize("trees", [1, 3])
def test_trees_of_no_rows(trees: int) -> None:
    nodes = forest(trees, 2, 4, 5)
    votes = leaf_votes(nodes, "target", 2)
    attributes = {**nodes, **votes, "n_targets": 2}
    assert run_ml("TreeEnsembleRegressor", [features(0)], **attributes)[0].size == 0


@pytest.mark.parametrize("name", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_tree_classifier(name: str) -> None:
    nodes = forest(3, 3, 4, 3)
    attributes = {
        **nodes,
        **leaf_votes(nodes, "class", 3),
        "post_transform": name,
        "classlabels_int64s": [7, 5, 6],
    }
    label, got = run_ml(
        "TreeEnsembleClassifier", [features(20)], outputs=2, **attributes
    )
    right = reference("TreeEnsembleClassifier", [features(20)], outputs=2, **attributes)
    sums = reference(
        "TreeEnsembleClassifier",
        [features(20)],
        outputs=2,
        **{**attributes, "post_transform": "NONE"},
    )[1]
    assert (abs(got - right[1]) <= 64 * EPS * (1 + abs(right[1]))).all()
    assert (label == np.array([7, 5, 6])[sums.argmax(1)]).all()
    assert len(set(label.tolist())) > 1


@pytest.mark.parametrize(("sign", "name"), [(1, "NONE"), (-1, "LOGISTIC")])
def test_tree_classifier_with_votes_for_one_class(sign: int, name: str) -> None:
    nodes = forest(1, 3, 4, 3)
    votes = leaf_votes(nodes, "class", 1)
    count = len(votes["class_weights"])
    votes["class_weights"] = [
        (i / count if sign > 0 else i - count / 2) for i in range(count)
    ]
    attributes = {
        **nodes,
        **votes,
        "post_transform": name,
        "classlabels_int64s": [0, 1],
    }
    label, got = run_ml(
        "TreeEnsembleClassifier", [features(20)], outputs=2, **attributes
    )
    right = reference("TreeEnsembleClassifier", [features(20)], outputs=2, **attributes)
    assert (abs(got - right[1]) <= 16 * EPS).all()
    assert (label == right[0]).all() and len(set(label.tolist())) == 2


def tensor(values: list[float], kind: str) -> onnx.TensorProto:
    return onnx.numpy_helper.from_array(np.array(values, kind))


@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
def test_tree_ensemble_with_sets(kind: str) -> None:
    """x0 <= 1 ? (x1 in {2, 5} ? 10 : 20) : 30, and a tree that is one leaf of 1."""
    x = np.array([[0, 5], [1, 3], [2, 5], [0, 2]], kind)
    attributes = {
        "n_targets": 2, "aggregate_function": 1, "tree_roots": [0, 2],
        "nodes_featureids": [0, 1, 0], "nodes_splits": tensor([1, 0, 0], kind),
        "nodes_modes": tensor([0, 6, 0], "uint8"),
        "nodes_truenodeids": [1, 0, 3], "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 1, 3], "nodes_falseleafs": [1, 1, 1],
        "leaf_targetids": [0, 0, 0, 1], "leaf_weights": tensor([10, 20, 30, 1], kind),
        "membership_values": tensor([2, 5, np.nan], kind),
    }  # fmt: skip
    got = run_ml("TreeEnsemble", [x], version=5, **attributes)[0]
    assert got.dtype == x.dtype
    assert got.tolist() == [[10, 1], [20, 1], [30, 1], [10, 1]]


def test_damaged_trees_are_refused() -> None:
    nodes = forest(1, 1, 4, 0)
    votes = leaf_votes(nodes, "target", 1)
    with pytest.raises(Unsupported, match="circles"):
        run_ml(
            "TreeEnsembleRegressor",
            [features(2)],
            n_targets=1,
            **{**nodes, **votes, "nodes_truenodeids": [0, 0, 0]},
        )
    with pytest.raises(Unsupported, match="the model is damaged"):
        run_ml(
            "TreeEnsembleRegressor",
            [features(2)],
            n_targets=1,
            **{**nodes, **votes, "nodes_featureids": [9, 0, 0]},
        )
