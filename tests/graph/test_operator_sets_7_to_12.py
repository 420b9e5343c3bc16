"""What models of old operator sets say, as ONNX Runtime runs it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import nanoloom
from nanoloom.cache import Cache
from tests.dynamic.compared import session

X = np.random.default_rng(0).standard_normal((4, 3, 5)).astype(np.float32)
NODES = {
    "Concat": "y = Concat<axis = -1>(x, x)",
    "LogSoftmax": "y = LogSoftmax<axis = 1>(x)",
    "Hardmax": "y = Hardmax<axis = 1>(x)",
    "ReduceSum": "y = ReduceSum<axes = [-1, 0]>(x)",
    "Slice": "y = Slice<axes = [-1], starts = [1], ends = [-1]>(x)",
    "Softmax": "y = Softmax<axis = 0>(x)",
    "Squeeze": "s = Slice<axes = [1], starts = [1], ends = [2]>(x)"
    " y = Squeeze<axes = [-2]>(s)",
    "Unsqueeze": "y = Unsqueeze<axes = [-1, -3]>(x)",
}


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("op", NODES)
def test_the_same_as_onnx_runtime(op: str, constant: bool, tmp_path: Path) -> None:
    given = "" if constant else "float[4,3,5] x"
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 9]> g ({given}) => (float[] y)'
        f" {{ {NODES[op]} }}"
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    if constant:
        model.graph.initializer.append(onnx.numpy_helper.from_array(X, "x"))
    feeds = {} if constant else {"x": X}
    (wanted,) = session(model).run(None, feeds)
    made = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))(feeds)["y"]
    assert made.shape == wanted.shape
    np.testing.assert_allclose(made, wanted, 1e-5, 1e-6)


@pytest.mark.parametrize("op", ["GRU", "LSTM", "RNN"])
def test_a_recurrence_does_not_say_its_size(op: str, tmp_path: Path) -> None:
    """It is that of its weights."""
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[op]
    w, r = (
        np.ones((1, 2 * gates, 5), np.float32),
        np.ones((1, 2 * gates, 2), np.float32),
    )

    def run(size: str) -> np.ndarray:
        model = onnx.parser.parse_model(
            f'<ir_version: 8, opset_import: ["" : 14]> g (float[4,3,5] x)'
            f" => (float[a,b,c] h) {{ , h = {op}{size}(x, w, r) }}"
        )
        pairs = (("w", w), ("r", r / 8))
        made = [onnx.numpy_helper.from_array(a, name) for name, a in pairs]
        model.graph.initializer.extend(made)
        program = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))
        return program({"x": X})["h"]

    np.testing.assert_array_equal(run(""), run("<hidden_size = 2>"))


@pytest.mark.parametrize("opset", [1, 6])
def test_an_older_set_with_the_same_nodes(opset: int, tmp_path: Path) -> None:
    """skl2onnx imports the first set that has them."""
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[n,3] x)'
        " => (float[3,n] y) { z = Identity(x) y = Transpose(z) }"
    )
    made = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))({"x": X[0, :, :3]})
    np.testing.assert_array_equal(made["y"], X[0, :, :3].T)
