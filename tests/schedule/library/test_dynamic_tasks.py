"""Tasks of open images that make a border have memory of a known size."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import nanoloom


@pytest.mark.drawn
@pytest.mark.parametrize("filters", [1, 8])
@pytest.mark.parametrize(("taps", "step"), [(3, 1), (2, 3), (3, 4), (5, 2)])
def test_images_of_any_size(filters: int, taps: int, step: int) -> None:
    """One program for all sizes, whatever windows leave between them."""
    random = np.random.default_rng(2)
    weights = random.integers(-9, 9, (filters, 1, taps, taps), np.int8)
    node = helper.make_node(
        "ConvInteger", ["x", "w", "z"], ["y"], pads=[1] * 4, strides=[step] * 2
    )
    image = helper.make_tensor_value_info("x", TensorProto.UINT8, (1, 1, "h", "v"))
    graph = helper.make_graph(
        [node], "layer", [image],
        [helper.make_tensor_value_info("y", TensorProto.INT32, None)],
        [numpy_helper.from_array(weights, "w"),
         numpy_helper.from_array(np.uint8(9), "z")],
    )  # fmt: skip
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    program, reference = nanoloom.compile(proto, threads=2), ReferenceEvaluator(proto)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # each size on its own, for one
        for sizes in ((9, 11), (33, 20), (5, 300), (64, 64)):
            x = random.integers(0, 255, (1, 1, *sizes)).astype(np.uint8)
            (wanted,) = reference.run(None, {"x": x})
            assert (program({"x": x})["y"] == wanted).all() and wanted.any()
