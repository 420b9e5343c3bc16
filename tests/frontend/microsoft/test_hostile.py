"""Whatever a file says of such a node, it ends with a sentence or a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from nanoloom.errors import Error
from nanoloom.frontend.microsoft.operators import OPERATORS
from nanoloom.frontend.onnx import load
from nanoloom.frontend.problems import problems
from tests.frontend.microsoft.single import DOMAIN

ATTRIBUTES: dict[str, list[Any]] = {
    "num_heads": [0, 1, 2, -1], "kv_num_heads": [0, 2], "K": [0, 8, -3], "N": [0, 4],
    "bits": [4, 8, 3], "block_size": [0, 16, -2], "axis": [0, 7, -9], "groups": [0, 2],
    "opset": [0, 13], "activation": ["Relu", "", "Clip"], "quantize_axis": [0, 9],
    "epsilon": [0.5, "x", 3], "mode": ["bilinear", 4], "keepdims": [1], "axes": [[0]],
    "kernel_shape": [[2, 2], [0]], "qkv_hidden_sizes": [[1], [4, 4, 4]],
    "do_rotary": [1], "unidirectional": [1], "transA": [1], "transBatchB": [1],
    "channels_last": [1],
    "metric": ["euclidean", 1], "alpha": [0.5, 2], "auto_pad": ["SAME_UPPER", ""],
}  # fmt: skip
SHAPES = [(), (1,), (4,), (2, 8), (2, 3, 8), (1, 2, 3, 4), (2, 3, 2, 3, 2), (0, 4)]
TYPES = [np.float32, np.float64, np.int32, np.int64, np.uint8, np.int8, np.bool_]


def drawn(random: np.random.Generator, name: str) -> onnx.ModelProto:
    """A node of random inputs, some of them constants, and random attributes."""
    count = int(random.integers(0, 13))
    names = [f"x{i}" if random.random() < 0.8 else "" for i in range(count)]
    given: dict[str, Any] = {}
    for key, values in ATTRIBUTES.items():
        if random.random() < 0.4:
            given[key] = values[random.integers(len(values))]
    outputs = [f"y{i}" for i in range(random.integers(1, 5))]
    node = helper.make_node(name, names, outputs, name="n", domain=DOMAIN, **given)
    inputs: list[onnx.ValueInfoProto] = []
    weights: list[onnx.TensorProto] = []
    for x in filter(None, names):
        shape, kind = SHAPES[random.integers(len(SHAPES))], TYPES[random.integers(7)]
        if random.random() < 0.4:
            weights.append(numpy_helper.from_array(np.ones(shape, kind), x))
            continue
        dtype = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        declared = None if random.random() < 0.1 else shape
        inputs.append(helper.make_tensor_value_info(x, dtype, declared))
    made = [onnx.ValueInfoProto(name=y) for y in outputs]
    graph = helper.make_graph([node], "g", inputs, made, weights)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


@pytest.mark.drawn(one_in=4)
@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_no_exception_of_another_kind(name: str) -> None:
    random = np.random.default_rng(sorted(OPERATORS).index(name))
    for _ in range(60):
        proto = drawn(random, name)
        try:
            found = problems(load(proto))
        except Error:
            continue  # the checks behind have a sentence of their own
        assert all(p.reason and p.hint for p in found)
