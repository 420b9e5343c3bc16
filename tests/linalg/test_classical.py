"""Operators of ai.onnx.ml against ONNX's reference evaluator and plain formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx.reference import ReferenceEvaluator

from nanoloom.errors import Unsupported
from tests.linalg.single import Arrays, model_of, run_node

ML = "ai.onnx.ml"
EPS = float(np.finfo(np.float32).eps)


def run_ml(op: str, inputs: Arrays, version: int = 3, **more: Any) -> list[np.ndarray]:
    return run_node(op, inputs, version=version, domain=ML, **more)


def reference(
    op: str, inputs: Arrays, version: int = 3, outputs: int = 1, **attributes: Any
) -> list[np.ndarray]:
    model, feeds = model_of(
        op, inputs, attributes, version=version, domain=ML, outputs=outputs
    )
    return list(ReferenceEvaluator(model).run(None, feeds))


def test_array_feature_extractor() -> None:
    x = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
    places = np.array([4, 0, 3], np.int64)
    for constants in ((), (1,)):
        got = run_ml("ArrayFeatureExtractor", [x, places], constants=constants)[0]
        assert (got == x[:, places]).all()


@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "int32"])
def test_binarizer_and_scaler(kind: str) -> None:
    x = np.array([[1, 5, -3], [2, 0, 7]], kind)
    assert (run_ml("Binarizer", [x], threshold=1.5)[0] == (x > 1.5)).all()
    offset, scale = [0.5, -1.0, 2.0], [2.0, 0.25, -1.0]
    got = run_ml("Scaler", [x], offset=offset, scale=scale)[0]
    assert got.dtype == np.float32
    assert (got == ((x - np.array(offset)) * np.array(scale))).all()
    with pytest.raises(Unsupported, match="offset has 2 numbers"):
        run_ml("Scaler", [x], offset=[1.0, 2.0], scale=[1.0])


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm: str) -> None:
    x = np.array([[1, 5.5, -3], [0, 0, 0], [-2, 4, 1]], np.float32)
    got = run_ml("Normalizer", [x], norm=norm)[0]
    by = {"MAX": x.max(1), "L1": abs(x).sum(1), "L2": np.sqrt((x * x).sum(1))}[norm]
    right = x / np.where(by == 0, 1, by)[:, None]
    assert (abs(got - right) <= 8 * EPS * abs(right)).all()
    assert abs(right).max() > 0.5


def test_imputer() -> None:
    x = np.array([[1, np.nan, 3], [np.nan, 2, np.nan]], np.float32)
    got = run_ml(
        "Imputer",
        [x],
        imputed_value_floats=[7.0, 8.0, 9.0],
        replaced_value_float=float("nan"),
    )[0]
    assert got.tolist() == [[1, 8, 3], [7, 2, 9]]
    whole = np.array([[1, -1], [-1, 5]])
    got = run_ml("Imputer", [whole], imputed_value_int64s=[4], replaced_value_int64=-1)[
        0
    ]
    assert got.tolist() == [[1, 4], [4, 5]]


def test_encoders() -> None:
    x = np.array([[3, 1], [9, 2]], np.int64)
    got = run_ml("OneHotEncoder", [x], cats_int64s=[1, 2, 3])[0]
    assert (got == (x[..., None] == np.array([1, 2, 3]))).all()
    got = run_ml(
        "LabelEncoder",
        [x],
        version=4,
        keys_int64s=[1, 2, 3],
        values_floats=[0.5, 1.5, 2.5],
        default_float=-1.0,
    )[0]
    assert got.tolist() == [[2.5, 0.5], [-1, 1.5]]
    y = np.array([np.nan, 2, 3], np.float32)
    got = run_ml(
        "LabelEncoder",
        [y],
        version=4,
        keys_floats=[np.nan, 2.0],
        values_int64s=[10, 20],
    )[0]
    assert got.tolist() == [10, 20, -1]
    tensors = {
        "keys_tensor": onnx.numpy_helper.from_array(np.array([1, 9])),
        "values_tensor": onnx.numpy_helper.from_array(np.array([5, 6], np.int16)),
        "default_tensor": onnx.numpy_helper.from_array(np.array([-7], np.int16)),
    }
    got = run_ml("LabelEncoder", [x], version=4, **tensors)[0]
    assert got.dtype == np.int16 and got.tolist() == [[-7, 5], [6, -7]]
    with pytest.raises(Unsupported, match="categories are strings"):
        run_ml("OneHotEncoder", [x], cats_strings=["a"])


def test_feature_vectorizer() -> None:
    x, y = np.ones((2, 3), np.float32), np.full((2, 1), 5.0, np.float32)
    got = run_ml("FeatureVectorizer", [x, y], inputdimensions=[3, 1])[0]
    assert got.tolist() == [[1, 1, 1, 5]] * 2


def softmax_zero(scores: np.ndarray) -> np.ndarray:
    top = scores.max(1, keepdims=True)
    grown = np.where(abs(scores) > 1e-7, np.exp(scores - top), scores * np.exp(-top))
    return grown / grown.sum(1, keepdims=True)


def expected(scores: np.ndarray, name: str) -> np.ndarray:
    if name == "SOFTMAX":
        grown = np.exp(scores - scores.max(1, keepdims=True))
        return grown / grown.sum(1, keepdims=True)
    return {
        "NONE": lambda: scores,
        "LOGISTIC": lambda: 1 / (1 + np.exp(-scores)),
        "SOFTMAX_ZERO": lambda: softmax_zero(scores),
    }[name]()


@pytest.mark.parametrize("name", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_linear_models(name: str) -> None:
    r = np.random.default_rng(2)
    x = r.standard_normal((5, 7)).astype(np.float32)
    w, c = r.standard_normal((3, 7)).astype(np.float32), [0.5, -0.25, 0.125]
    scores = x.astype(np.float64) @ w.T.astype(np.float64) + c
    # Scores are below 16 in size; the transforms have slope 1 at most.
    bound = (7 + 20) * EPS * 16
    coefficients = w.reshape(-1).tolist()
    got = run_ml(
        "LinearRegressor",
        [x],
        coefficients=coefficients,
        intercepts=c,
        targets=3,
        post_transform=name,
    )[0]
    assert (abs(got - expected(scores, name)) <= bound).all()
    assert not (abs(0 * got - expected(scores, name)) <= bound).all()
    label, got = run_ml(
        "LinearClassifier",
        [x],
        outputs=2,
        coefficients=coefficients,
        intercepts=c,
        classlabels_ints=[10, 20, 15],
        post_transform=name,
    )
    assert (abs(got - expected(scores, name)) <= bound).all()
    assert (label == np.array([10, 20, 15])[scores.argmax(1)]).all()


def test_two_classes_with_one_score() -> None:
    x = np.array([[1.0], [-0.5]], np.float32)
    given = {"coefficients": [2.0], "intercepts": [0.5], "classlabels_ints": [4, 9]}
    label, got = run_ml(
        "LinearClassifier", [x], outputs=2, post_transform="LOGISTIC", **given
    )
    second = 1 / (1 + np.exp(-np.array([2.5, -0.5])))
    assert (abs(got - np.stack([1 - second, second], 1)) <= 8 * EPS).all()
    assert label.tolist() == [9, 4]
    with pytest.raises(Unsupported, match="one score for two classes"):
        run_ml("LinearClassifier", [x], outputs=2, post_transform="NONE", **given)


def test_probit() -> None:
    """The approximation's own error is below 3e-3 up to the 95th percentile."""
    x = np.array([[0.05], [0.5], [0.84134475], [0.95]], np.float32)
    got = run_ml("LinearRegressor", [x], coefficients=[1.0], post_transform="PROBIT")[0]
    assert (abs(got.reshape(-1) - [-1.644854, 0, 1, 1.644854]) < 3e-3).all()


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
@settings(max_examples=10, deadline=None)
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
    with pytest.raises(Unsupported, match="votes for one of two classes"):
        run_ml(
            "TreeEnsembleClassifier",
            [features(3)],
            outputs=2,
            **{**attributes, "post_transform": "PROBIT"},
        )


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
    assert helper.make_opsetid(ML, 3).version == 3
