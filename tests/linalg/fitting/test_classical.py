"""Attributes of classical models that do not fit are refused in one sentence."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from nanoloom.errors import ModelError
from tests.linalg.harness import evaluate
from tests.linalg.single import model_of, run_node

X = np.ones((2, 3), np.float32)


def test_widths_of_other_inputs() -> None:
    with pytest.raises(ModelError, match=r"inputdimensions are \[3, 9\], its inputs"):
        run_node(
            "FeatureVectorizer",
            [X, X],
            domain="ai.onnx.ml",
            version=1,
            inputdimensions=[3, 9],
        )


@pytest.mark.parametrize("short", ["nodes_truenodeids", "target_ids", "nodes_values"])
def test_columns_of_different_lengths(short: str) -> None:
    table: dict[str, list[object]] = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_modes": ["BRANCH_LT", "LEAF", "LEAF"],
        "nodes_values": [1.0, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 0],
        "target_weights": [1.0, 2.0],
    }
    model = {"domain": "ai.onnx.ml", "version": 3, "n_targets": 1}
    run_node("TreeEnsembleRegressor", [X], **model, **table)  # type: ignore[arg-type]
    table[short] = table[short][:-1]
    with pytest.raises(ModelError, match=f"different lengths: .*{short}"):
        run_node("TreeEnsembleRegressor", [X], **model, **table)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(), (2, 3, 1)])
def test_features_are_in_rows(shape: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match=r"expected \[rows, features\]"):
        run_node(
            "LinearRegressor",
            [np.ones(shape, np.float32)],
            domain="ai.onnx.ml",
            version=1,
            coefficients=[1.0, 2.0, 3.0],
        )


@pytest.mark.parametrize("op", ["ArrayFeatureExtractor", "Imputer", "Scaler"])
def test_one_number_has_no_features(op: str) -> None:
    inputs = [np.float32(1).reshape(()), np.zeros(1, np.int64)]
    count = 2 if op == "ArrayFeatureExtractor" else 1
    with pytest.raises(ModelError):
        run_node(op, inputs[:count], domain="ai.onnx.ml", version=1)


def test_categories_are_different() -> None:
    with pytest.raises(ModelError, match="categories are not all different"):
        run_node(
            "OneHotEncoder",
            [np.arange(3)],
            domain="ai.onnx.ml",
            version=1,
            cats_int64s=[0, 0, 3],
        )


def test_targets_are_at_least_one() -> None:
    with pytest.raises(ModelError, match="targets is -3, expected 1 or more"):
        run_node(
            "LinearRegressor",
            [X],
            domain="ai.onnx.ml",
            version=1,
            coefficients=[1.0, 2.0, 3.0],
            targets=-3,
        )


def test_a_forest_has_trees() -> None:
    tensors = {
        "nodes_splits": X[0, :1],
        "nodes_modes": np.zeros(1, np.uint8),
        "leaf_weights": X[0, :1],
    }
    table = {name: onnx.numpy_helper.from_array(x) for name, x in tensors.items()}
    model, _ = model_of("TreeEnsemble", [X], {
        **table, "nodes_featureids": [0], "nodes_truenodeids": [0],
        "nodes_trueleafs": [1], "nodes_falsenodeids": [0], "nodes_falseleafs": [1],
        "leaf_targetids": [0], "n_targets": 1,
    }, domain="ai.onnx.ml", version=5)  # fmt: skip
    empty = onnx.AttributeProto(name="tree_roots", type=onnx.AttributeProto.INTS)
    model.graph.node[0].attribute.append(empty)
    with pytest.raises(ModelError, match="it has no trees"):
        evaluate(model, {"x0": X})


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("aggregate_function", -1), ("aggregate_function", 4),
        ("post_transform", -1), ("post_transform", 5),
    ],
)  # fmt: skip
def test_ways_are_numbers_of_a_list(name: str, number: int) -> None:
    model: dict[str, object] = {
        "nodes_splits": onnx.numpy_helper.from_array(X[0, :1]),
        "nodes_modes": onnx.numpy_helper.from_array(np.zeros(1, np.uint8)),
        "leaf_weights": onnx.numpy_helper.from_array(X[0, :2]),
        "nodes_featureids": [0],
        "nodes_truenodeids": [0],
        "nodes_trueleafs": [1],
        "nodes_falsenodeids": [1],
        "nodes_falseleafs": [1],
        "leaf_targetids": [0, 0],
        "tree_roots": [0],
        "n_targets": 1,
    }
    right = run_node("TreeEnsemble", [X], domain="ai.onnx.ml", version=5, **model)
    assert right[0].tolist() == [[1], [1]]
    for known in (
        {"aggregate_function": 3},
        {"aggregate_function": 0, "post_transform": 0},
    ):
        given = model | known
        run_node("TreeEnsemble", [X], domain="ai.onnx.ml", version=5, **given)
    model[name] = number
    with pytest.raises(ModelError, match=f"{name} is {number}, not in 0"):
        run_node("TreeEnsemble", [X], domain="ai.onnx.ml", version=5, **model)
