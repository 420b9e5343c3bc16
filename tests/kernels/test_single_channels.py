"""Images and volumes of one channel: their border is made by each task, or nowhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.compiler import Report, partition_model
from nanoloom.frontend.onnx import load
from nanoloom.nest.nest import LoopNest
from nanoloom.options import CompileOptions
from nanoloom.schedule.choose import choose
from nanoloom.schedule.language import ComputeAt, StoreAt, UnrollAndJam
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
        ((20, 6, 17), (1, 3, 3, 3), {"pads": [9, 1, 1] * 2, "dilations": [9, 1, 1]}),
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
    nests = nests_of(proto)
    stages = [[s.name for s in nest.stages] for nest in nests]
    assert ["copy"] not in stages
    assert sum("pad" in names for names in stages) == 1


def nests_of(proto: onnx.ModelProto) -> list[LoopNest]:
    program = partition_model(load(proto), CompileOptions(AVX512), Report())
    return [kernel.nest for kernel in program.kernels.values()]


@pytest.mark.parametrize("depth", [7, 9])
def test_few_taps_are_read_under_masks(depth: int) -> None:
    """Of more than 64, 7x3x3 and one, a task makes the border once for all."""
    around = [depth // 2, 1, 1]
    proto, _ = layer((16, 12, 24), (1, depth, 3, 3), pads=around * 2)
    (nest,) = nests_of(proto)
    words = choose(nest, AVX512).directives
    stored = any(isinstance(w, StoreAt) and w.where == "task" for w in words)
    loaded = any(isinstance(w, ComputeAt) and w.stage == "pad" for w in words)
    assert (stored, loaded) == (depth == 9, depth == 7)


@pytest.mark.drawn
@pytest.mark.parametrize("name", ["x86-64-v4", "x86-64-v3", "rv64gcv"])
@pytest.mark.parametrize(
    ("sizes", "taps", "how"),
    [
        ((21, 37), (3, 3), {"pads": [1, 1, 1, 1]}),
        ((30, 19), (5, 5), {"pads": [2, 2, 2, 2], "strides": [2, 2]}),
        ((40, 70), (11, 11), {"pads": [5, 5, 5, 5]}),
        ((9, 8), (1, 3), {}),
    ],
)
def test_a_filter_of_one_image(
    name: str, sizes: tuple[int, int], taps: tuple[int, int], how: dict[str, Any]
) -> None:
    """Vectors go along rows of pixels, some of them one below the other."""
    proto, x = layer(sizes, (1, *taps), **how)
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": x})
    assert (nanoloom.compile(proto)({"x": x})["y"] == wanted).all()
    assert len(np.unique(wanted)) > 9
    target = by_name(name)
    program = partition_model(load(proto), CompileOptions(target), Report())
    (kernel,) = program.kernels.values()
    schedule = choose(kernel.nest, target)
    assert "share what they read" in schedule.reason
    jammed = [w for w in schedule.directives if isinstance(w, UnrollAndJam)]
    assert any(w.stage == "product" for w in jammed)


@pytest.mark.parametrize(
    ("sizes", "filters", "how"),
    [
        ((17, 21), (12, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((17, 21), (1, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((6, 5, 9), (7, 3, 3, 3), {"pads": [1, 1, 2, 0, 1, 0]}),
        ((30,), (5, 7), {"pads": [3, 3], "strides": [2]}),
        ((5, 14), (8, 3, 3), {"pads": [0, 2, 0, 1], "strides": [3, 1]}),
    ],
)
def test_a_border_of_a_number_that_a_run_knows(
    sizes: tuple[int, ...], filters: tuple[int, ...], how: dict[str, Any]
) -> None:
    """Bytes with a zero point that is given with them."""
    random = np.random.default_rng(4)
    weights = random.integers(-100, 100, (filters[0], 1, *filters[1:]), np.int8)
    byte = TensorProto.UINT8
    graph = helper.make_graph(
        [helper.make_node("ConvInteger", ["x", "w", "z"], ["y"], **how)],
        "layer",
        [
            helper.make_tensor_value_info("x", byte, (1, 1, *sizes)),
            helper.make_tensor_value_info("z", byte, ()),
        ],
        [helper.make_tensor_value_info("y", TensorProto.INT32, None)],
        [numpy_helper.from_array(weights, "w")],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    program = nanoloom.compile(proto)
    x = random.integers(0, 255, (1, 1, *sizes)).astype(np.uint8)
    for zero in (0, 77, 255):
        feeds = {"x": x, "z": np.uint8(zero)}
        (wanted,) = ReferenceEvaluator(proto).run(None, feeds)
        assert (program(feeds)["y"] == wanted).all() and wanted.any()
    (pad,) = (pad for nest in nests_of(proto) for pad in nest.pads)
    assert str(pad).endswith("[] outside") and not pad.reads


def test_sums_end_where_windows_do() -> None:
    """Of an image that goes on behind its only windows, read without its border."""
    how = {"pads": [1, 0, 0, 1, 0, 0], "strides": [1, 3, 2], "dilations": [2, 1, 1]}
    proto, x = layer((16, 5, 2), (32, 3, 3, 1), **how)
    (filters,) = proto.graph.initializer
    w = numpy_helper.to_array(filters)
    proto.graph.initializer.remove(filters)
    given = helper.make_tensor_value_info("w", TensorProto.FLOAT, w.shape)
    proto.graph.input.append(given)
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": x, "w": w})
    assert (nanoloom.compile(proto)({"x": x, "w": w})["y"] == wanted).all()
    assert len(np.unique(wanted)) > 9
    (pad,) = (pad for nest in nests_of(proto) for pad in nest.pads)
    assert "inside, 0.0 outside" in str(pad) and not pad.cropped
