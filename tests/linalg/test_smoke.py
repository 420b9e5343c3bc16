"""The harness itself: a small model against float64, and zeros must fail."""

from __future__ import annotations

import numpy as np
import onnx.parser

from nanoloom.linalg import operators
from tests.linalg.harness import evaluate

MODEL = """<ir_version: 8, opset_import: ["":17]>
agraph (float[5,7] x, float[7,9] w) => (float[5,9] y) {
 h = MatMul(x, w)
 y = Relu(h)
}"""


def test_matmul_relu_within_its_bound() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 7)).astype(np.float32)
    w = rng.standard_normal((7, 9)).astype(np.float32)
    (got,) = evaluate(onnx.parser.parse_model(MODEL), {"x": x, "w": w})
    wide = x.astype(np.float64) @ w.astype(np.float64)
    bound = 9 * np.finfo(np.float32).eps * (abs(x).astype(float) @ abs(w))
    assert (abs(got - np.maximum(wide, 0)) <= bound).all()
    assert not (abs(0 * got - np.maximum(wide, 0)) <= bound).all()


def test_an_operator_has_one_lowering() -> None:
    tables = [x.OPERATORS for x in vars(operators).values() if hasattr(x, "OPERATORS")]
    assert sum(map(len, tables)) == len(operators.OPERATORS)
