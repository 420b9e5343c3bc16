"""Types and shapes of operators of ai.onnx.ml at version 1: ONNX infers none."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import nanoloom
from nanoloom.cache import Cache

ML = "ai.onnx.ml"
X = np.array([[1.0, 0.25, 2.0], [0.0, 3.0, -1.0]], np.float32)
TREE = {
    "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_featureids": [0, 0, 0],
    "nodes_values": [0.5, 0.0, 0.0], "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}  # fmt: skip
VOTES = {"treeids": [0, 0], "nodeids": [1, 2], "ids": [0, 1], "weights": [1.0, 2.0]}


def votes(name: str) -> dict[str, Any]:
    return {f"{name}_{key}": given for key, given in VOTES.items()}


def run(op: str, outputs: int, **attributes: Any) -> list[np.ndarray]:
    """One node at version 1, behind one without a declared shape."""
    names = [f"y{i}" for i in range(outputs)]
    halves = [f"h{i}" for i in range(outputs)]
    nodes = [helper.make_node(op, ["x"], halves, domain=ML, **attributes)]
    for half, name in zip(halves, names, strict=True):
        nodes.append(helper.make_node("Add", [half, half], [name]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    graph = helper.make_graph(
        nodes, "g", [x], [onnx.ValueInfoProto(name=n) for n in names]
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    made = nanoloom.compile(model, cache=Cache.temporary())({"x": X})
    return [made[name] / 2 for name in names]


@pytest.mark.parametrize(
    ("op", "attributes", "right"),
    [
        ("Binarizer", {"threshold": 0.5}, (X > 0.5) * 1.0),
        ("Scaler", {"offset": [1.0], "scale": [2.0]}, (X - 1) * 2),
        ("Normalizer", {"norm": "MAX"}, X / X.max(1, keepdims=True)),
        (
            "Imputer",
            {"imputed_value_floats": [7.0], "replaced_value_float": 3.0},
            np.where(X == 3, 7, X),
        ),
        ("OneHotEncoder", {"cats_int64s": [0, 3]}, X.astype(int)[..., None] == [0, 3]),
        ("FeatureVectorizer", {"inputdimensions": [3]}, X),
        (
            "LinearRegressor",
            {"coefficients": [1.0, 2.0, 4.0] * 2, "targets": 2},
            np.tile(X @ [[1], [2], [4]], 2),
        ),
        (
            "TreeEnsembleRegressor",
            {**TREE, **votes("target"), "n_targets": 2},
            [[0, 2], [1, 0]],
        ),
    ],
)
def test_one_output(op: str, attributes: dict[str, Any], right: np.ndarray) -> None:
    (made,) = run(op, 1, **attributes)
    assert made.tolist() == np.asarray(right, np.float32).tolist()


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("TreeEnsembleClassifier",
         {**TREE, **votes("class"), "classlabels_int64s": [4, 8]}),
        ("LinearClassifier",
         {"coefficients": [0.0, 1.0, 0.0, 1.0, 0.0, 0.0], "intercepts": [0.0, 0.0],
          "classlabels_ints": [4, 8]}),
        ("SVMClassifier",
         {"coefficients": [0.0, 1.0, 0.0, 1.0, 0.0, 0.0], "rho": [0.0],
          "kernel_type": "LINEAR", "classlabels_ints": [4, 8]}),
    ],
)  # fmt: skip
def test_labels_and_scores(op: str, attributes: dict[str, Any]) -> None:
    """The first row is of class 8, the second of class 4."""
    label, scores = run(op, 2, **attributes)
    assert label.tolist() == [8, 4]
    assert scores.shape == (2, 2)
    assert (scores.argmax(1) == [1, 0]).all()


def test_label_encoder() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.INT64, ["n"])
    node = helper.make_node(
        "LabelEncoder", ["x"], ["y"], domain=ML, keys_int64s=[1, 2],
        values_floats=[0.5, 1.5], default_float=-1.0,
    )  # fmt: skip
    graph = helper.make_graph([node], "g", [x], [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 2)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    program = nanoloom.compile(model, cache=Cache.temporary())
    assert program({"x": np.array([2, 0, 1])})["y"].tolist() == [1.5, -1, 0.5]
