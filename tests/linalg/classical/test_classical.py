"""Operators of ai.onnx.ml against ONNX's reference evaluator and plain formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from nanoloom.errors import ModelError, Unsupported
from tests.linalg.single import Arrays, run_node

ML = "ai.onnx.ml"
EPS = float(np.finfo(np.float32).eps)


def run_ml(op: str, inputs: Arrays, version: int = 3, **more: Any) -> list[np.ndarray]:
    return run_node(op, inputs, version=version, domain=ML, **more)


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


@pytest.mark.parametrize("rows", [3, 4])
def test_features_of_other_rows_are_refused(rows: int) -> None:
    """Not laid side by side by their numbers: 4 rows are no 2 of twice as many."""
    with pytest.raises(ModelError, match=f"it puts {rows} rows beside 2"):
        given = [np.ones(shape, np.float32) for shape in ((2, 3), (rows, 1))]
        run_ml("FeatureVectorizer", given, inputdimensions=[3, 1])


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


def test_probit() -> None:
    """The approximation's own error is below 3e-3 up to the 95th percentile."""
    x = np.array([[0.05], [0.5], [0.84134475], [0.95]], np.float32)
    got = run_ml("LinearRegressor", [x], coefficients=[1.0], post_transform="PROBIT")[0]
    assert (abs(got.reshape(-1) - [-1.644854, 0, 1, 1.644854]) < 3e-3).all()
