"""What a file says twice."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import nanoloom
from nanoloom.cache import Cache
from tests.frontend import models

X = np.random.default_rng(0).standard_normal((1, 2, 7, 6)).astype(np.float32)


def pooled(op: str, **attributes: object) -> np.ndarray:
    node = helper.make_node(
        op, ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], **attributes
    )
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)]
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)])
    return nanoloom.compile(model, cache=Cache.temporary())({"x": X})["y"]


@pytest.mark.drawn
@pytest.mark.parametrize("op", ["AveragePool", "LpPool", "MaxPool"])
@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
def test_pads_beside_auto_pad(op: str, mode: str) -> None:
    """auto_pad decides, where it says anything."""
    got = pooled(op, auto_pad=mode, pads=[0, 0, 1, 1])
    right = pooled(
        op, **{"pads": [0, 0, 1, 1]} if mode == "NOTSET" else {"auto_pad": mode}
    )
    assert got.shape == right.shape and (got == right).all()
    shapes = {"VALID": (3, 2), "NOTSET": (3, 3)}
    assert got.shape[2:] == shapes.get(mode, (4, 3))


def test_an_output_that_is_listed_twice() -> None:
    proto = models.chain([models.unary("x", "y", "Neg")])
    proto.graph.output.append(proto.graph.output[0])
    shape = [d.dim_value or 2 for d in proto.graph.input[0].type.tensor_type.shape.dim]
    program = nanoloom.compile(proto, cache=Cache.temporary())
    x = np.ones(shape, np.float32)
    made = program({"x": x})
    assert list(made) == ["y"] == [value.name for value in program.outputs]
    assert (made["y"] == -x).all()


def test_a_body_that_lists_a_value_twice() -> None:
    """It is the last one, and all of them."""
    value = partial(helper.make_tensor_value_info, elem_type=TensorProto.FLOAT)
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    number = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    after = value("b", shape=[3])
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "x"], ["b"])],
        "body",
        [number, condition, value("a", shape=[3])],
        [condition, after, after],
    )
    trips = onnx.numpy_helper.from_array(np.int64(4), "n")
    loop = helper.make_node("Loop", ["n", "", "x"], ["last", "all"], body=body)
    results = [onnx.ValueInfoProto(name="last"), onnx.ValueInfoProto(name="all")]
    graph = helper.make_graph([loop], "g", [value("x", shape=[3])], results, [trips])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    x = np.array([0, 1, 2], np.float32)
    made = nanoloom.compile(model, cache=Cache.temporary())({"x": x})
    right = np.array([2 * x, 3 * x, 4 * x, 5 * x])
    assert (made["all"] == right).all() and (made["last"] == right[-1]).all()


def test_weights_whose_path_turns_back(tmp_path: Path) -> None:
    """weights/../weights/w.bin is weights/w.bin."""
    w = np.arange(5000, dtype=np.float32)
    tensor = onnx.numpy_helper.from_array(w, "w")
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "w.bin").write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights/../weights/w.bin")
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [5000])
    node = helper.make_node("Add", ["x", "w"], ["y"])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [5000])
    graph = helper.make_graph([node], "g", [value], [out], [tensor])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    program = nanoloom.compile(tmp_path / "m.onnx", cache=Cache.temporary())
    assert (program({"x": w})["y"] == 2 * w).all()
