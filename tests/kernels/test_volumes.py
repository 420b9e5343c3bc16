"""Volumes and images of one channel: their border is made by each task, or nowhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.compiler import Report, cut_model
from nanoloom.frontend.onnx import load
from nanoloom.options import CompileOptions
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import ComputeAt, StoreAt
from nanoloom.target import by_name
from tests.linalg.bounds import sample

AVX512 = by_name("x86-64-v4")


def layer(
    sizes: tuple[int, ...], filters: tuple[int, ...], **how: Any
) -> tuple[onnx.ModelProto, np.ndarray]:
    """A convolution of an image of one channel, and the image: sums are exact."""
    weights = np.rint(3 * sample(1, (filters[0], 1, *filters[1:]), "float32"))
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], **how)],
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 1, *sizes))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights, "w")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    return made, np.rint(3 * sample(2, (1, 1, *sizes), "float32"))


@pytest.mark.parametrize(
    ("sizes", "filters", "how"),
    [
        ((7, 9, 19), (1, 11, 3, 3), {"pads": [5, 1, 1, 5, 1, 1]}),
        ((7, 9, 19), (24, 11, 3, 3), {"pads": [5, 1, 1, 5, 1, 1]}),
        ((20, 6, 17), (1, 3, 3, 3), {"pads": [9, 1, 1, 9, 1, 1], "dilations": [9, 1, 1]}),
        ((5, 14, 16), (1, 5, 3, 3), {"pads": [2, 1, 1, 2, 1, 1], "strides": [1, 1, 3]}),
    ],
)  # fmt: skip
def test_no_border_is_copied(
    sizes: tuple[int, ...], filters: tuple[int, ...], how: dict[str, Any]
) -> None:
    """Windows of many planes, of planes far apart, and of three steps along a row."""
    proto, x = layer(sizes, filters, **how)
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": x})
    for threads in (1, 2):
        found = nanoloom.compile(proto, threads=threads)({"x": x})["y"]
        assert (found == wanted).all() and len(np.unique(wanted)) > 9
    program = cut_model(load(proto), CompileOptions(AVX512), Report())
    stages = [[s.name for s in k.nest.stages] for k in program.kernels.values()]
    assert ["copy"] not in stages
    assert sum("pad" in names for names in stages) == 1


@pytest.mark.parametrize("depth", [7, 9])
def test_few_taps_are_read_under_masks(depth: int) -> None:
    """Of more than 64, 7x3x3 and one, a task makes the border once for all."""
    around = [depth // 2, 1, 1]
    proto, _ = layer((16, 12, 24), (1, depth, 3, 3), pads=around * 2)
    program = cut_model(load(proto), CompileOptions(AVX512), Report())
    (kernel,) = program.kernels.values()
    words = choose(kernel.nest, AVX512).directives
    stored = any(isinstance(w, StoreAt) and w.where == "task" for w in words)
    loaded = any(isinstance(w, ComputeAt) and w.stage == "pad" for w in words)
    assert (stored, loaded) == (depth == 9, depth == 7)
