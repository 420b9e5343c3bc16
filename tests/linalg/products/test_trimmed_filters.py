"""Filters lose the taps that meet nothing but a border."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.compiler import Report, partition_model
from nanoloom.frontend.onnx import load
from nanoloom.options import CompileOptions
from nanoloom.target import by_name

FORMS = ("Conv", "DequantizeLinear", "ConvInteger", "QLinearConv")


def model(form: str, sizes: tuple[int, int], how: dict[str, object]) -> onnx.ModelProto:
    """x [2, 4, sizes] by filters [6, 4, 3, 3], of integers where the form says so."""
    random = np.random.default_rng(3)
    byte, filters = TensorProto.UINT8, random.integers(-9, 9, (6, 4, 3, 3), np.int8)
    scales = np.float32([1, 0.5, 0.25, 2, 1, 0.5])
    known = {
        "w": filters.astype(np.float32) if form == "Conv" else filters,
        "s": np.float32(0.5), "t": scales, "z": np.uint8(8), "o": np.zeros(6, np.int8),
    }  # fmt: skip
    inputs, kind = {
        "Conv": (["x", "w"], TensorProto.FLOAT),
        "DequantizeLinear": (["x", "d"], TensorProto.FLOAT),
        "ConvInteger": (["x", "w", "z"], TensorProto.INT32),
        "QLinearConv": (["x", "s", "z", "w", "t", "o", "s", "z"], byte),
    }[form]
    given = kind if kind == TensorProto.FLOAT else byte
    name = "Conv" if form == "DequantizeLinear" else form
    nodes = [helper.make_node(name, inputs, ["y"], **how)]
    if form == "DequantizeLinear":
        nodes.insert(0, helper.make_node(form, ["w", "t", "o"], ["d"], axis=0))
    graph = helper.make_graph(
        nodes, "layer",
        [helper.make_tensor_value_info("x", given, (2, 4, *sizes))],
        [helper.make_tensor_value_info("y", kind, ("N", 6, "H", "W"))],
        [numpy_helper.from_array(np.asarray(x), name) for name, x in known.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])


@pytest.mark.drawn(one_in=8)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("sizes", "how", "taps"),
    [
        ((1, 1), {"pads": [1, 1, 1, 1]}, (1, 1)),
        ((1, 7), {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}, (1, 3)),
        ((4, 9), {"pads": [6, 6, 6, 6], "dilations": [6, 6]}, (1, 3)),
        ((1, 8), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, (1, 3)),
        ((2, 1), {"auto_pad": "SAME_LOWER", "strides": [2, 1]}, (2, 1)),
        ((2, 2), {"pads": [1, 1, 1, 1]}, (3, 3)),
        ((5, 4), {"strides": [3, 2]}, (3, 3)),  # behind the windows two rows, a column
        ((2, 5), {"pads": [2, 0, 0, 0], "strides": [3, 3]}, (1, 3)),
    ],
)  # fmt: skip
def test_numbers(
    form: str, sizes: tuple[int, int], how: dict[str, object], taps: tuple[int, int]
) -> None:
    """Whole numbers, and sums that are exact in any order."""
    proto = model(form, sizes, how)
    random = np.random.default_rng(4)
    kind = (
        np.float32 if proto.graph.input[0].type.tensor_type.elem_type == 1 else np.uint8
    )
    x = random.integers(0, 15, (2, 4, *sizes)).astype(kind)
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": x})
    found = nanoloom.compile(proto)({"x": x})["y"]
    assert found.shape == wanted.shape and (found == wanted).all()
    assert len(np.unique(wanted)) > 2, "anything would be right"
    assert products_of(proto) == 4 * np.prod(taps)


def products_of(proto: onnx.ModelProto) -> int:
    """How many products a layer adds up for each result."""
    options = CompileOptions(by_name("x86-64-v4"))
    program = partition_model(load(proto), options, Report())
    nests = [kernel.nest for kernel in program.kernels.values()]
    (product,) = (x for nest in nests for x in nest.stages if x.is_contraction)
    extents = [axis.extent for axis in product.axes if axis.is_reduction]
    assert all(isinstance(n, int) for n in extents)
    return int(np.prod(extents))


@pytest.mark.parametrize("taps", [1, 3])
def test_filters_that_were_dequantized_stay_so(taps: int) -> None:
    """The layer is computed in integers, of filters without those taps, or of a part
    of the image."""
    part = taps == 3
    how = {"strides": [3, 3]} if part else {"pads": [1, 1, 1, 1]}
    sizes = (5, 5) if part else (1, 5)
    proto = model("DequantizeLinear", sizes, how)
    before = [
        helper.make_node("QuantizeLinear", ["image", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["x"]),
        *proto.graph.node,
        helper.make_node("QuantizeLinear", ["y", "s", "z"], ["bytes"]),
    ]
    del proto.graph.node[:]
    proto.graph.node.extend(before)
    proto.graph.input[0].name = "image"
    proto.graph.output[0].name = "bytes"
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.UINT8
    image = np.random.default_rng(5).standard_normal((2, 4, *sizes), np.float32)
    (wanted,) = ReferenceEvaluator(proto).run(None, {"image": image})
    found = nanoloom.compile(proto)({"image": image})["bytes"]
    assert (found == wanted).all() and len(np.unique(wanted)) > 3
    assert products_of(proto) == 4 * 3 * taps


def test_filters_that_only_a_run_knows() -> None:
    """Taps that meet the border alone are left out of them, too."""
    proto = model("ConvInteger", (1, 7), {"pads": [1, 1, 1, 1]})
    (filters,) = (x for x in proto.graph.initializer if x.name == "w")
    w = numpy_helper.to_array(filters)
    proto.graph.initializer.remove(filters)
    given = helper.make_tensor_value_info("w", TensorProto.INT8, w.shape)
    proto.graph.input.append(given)
    x = np.random.default_rng(6).integers(0, 15, (2, 4, 1, 7)).astype(np.uint8)
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": x, "w": w})
    found = nanoloom.compile(proto)({"x": x, "w": w})["y"]
    assert (found == wanted).all() and len(np.unique(wanted)) > 2
    assert products_of(proto) == 4 * 3


def test_what_a_single_window_leaves_is_not_copied() -> None:
    """A part of an image is read where it is, without the border at its sides."""
    proto = model("Conv", (4, 30), {"strides": [3, 1], "pads": [1, 1, 0, 1]})
    program = partition_model(
        load(proto), CompileOptions(by_name("x86-64-v4")), Report()
    )
    (kernel,) = program.kernels.values()
    pad = "pad[d0, d1, d2, d3] <- arg0[d0, d1, d2, d3 - 1] inside, 0.0 outside"
    assert pad in str(kernel.nest)
    assert [s.name for s in kernel.nest.stages] == ["pad", "fill", "product"]
