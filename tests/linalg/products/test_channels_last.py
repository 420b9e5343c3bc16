"""Nodes of nanoloom's own domain: [n, spatial..., c] with the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.linalg.harness import evaluate
from tests.linalg.single import run_node

WINDOW = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("Conv", {"group": 2, **WINDOW}),
    ("Conv", {"group": 4, "auto_pad": "SAME_UPPER"}),
    ("ConvTranspose", {"strides": [2, 3], "pads": [1, 0, 0, 1]}),
    ("MaxPool", {"ceil_mode": 1, **WINDOW}),
    ("AveragePool", {"count_include_pad": 1, **WINDOW}),
    ("LpPool", {"p": 3, **WINDOW}),
    ("GlobalAveragePool", {}),
    ("GlobalMaxPool", {}),
    ("GlobalLpPool", {"p": 1}),
]


def run_last(
    op: str, x: np.ndarray, weights: list[np.ndarray], shape: list[int], **more: Any
) -> np.ndarray:
    names = ["x", *[f"w{i}" for i in range(len(weights))]]
    node = helper.make_node(
        op, names, ["y"], domain="nanoloom", channels_last=1, **more
    )
    graph = helper.make_graph(
        [node],
        "last",
        [helper.make_tensor_value_info("x", 1, x.shape)],
        [helper.make_tensor_value_info("y", 1, shape)],
        [onnx.numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)],
    )
    opsets = [helper.make_opsetid("", 22), helper.make_opsetid("nanoloom", 22)]
    model = helper.make_model(graph, opset_imports=opsets)
    return evaluate(model, {"x": x})[0]


@pytest.mark.parametrize(("op", "attributes"), CASES)
def test_same_numbers(op: str, attributes: dict[str, Any]) -> None:
    r = np.random.default_rng(0)
    x = r.standard_normal((2, 4, 7, 6)).astype(np.float32)
    group = attributes.get("group", 1)
    weights = []
    if op.startswith("Conv"):
        front = (8, 4 // group) if op == "Conv" else (4, 8)
        weights = [r.standard_normal((*front, 3, 2)).astype(np.float32),
                   r.standard_normal(8).astype(np.float32)]  # fmt: skip
    right = run_node(op, [x, *weights], **attributes)[0]
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    shape = list(np.moveaxis(right, 1, -1).shape)
    got = run_last(op, last, weights, shape, **attributes)
    assert (np.moveaxis(got, -1, 1) == right).all()
    assert abs(right).max() > 0.1
