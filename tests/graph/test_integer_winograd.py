"""Which convolutions of integers are marked for Winograd's method."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper

import nanoloom
from nanoloom.graph.integer_convolutions import PLACES
from nanoloom.graph.stage import optimize
from nanoloom.linalg.operators import OPERATORS
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from nanoloom.target.host import host
from tests.linalg.bounds import sample
from tests.linalg.single import model_of
from tests.vector.kernel_harness import shared_cache

SAME = [1, 1, 1, 1]
PAIRS = "x86-64-v3"


def tile_in(model: onnx.ModelProto, target: str = PAIRS) -> int | None:
    on = by_name(target)
    graph = optimize(ir.from_proto(model), OPERATORS.keys(), None, on).graph
    (node,) = (n for n in graph if (n.domain, n.op_type) in PLACES)
    mark = node.attributes.get("winograd")
    return None if mark is None else mark.as_int()


def sums(
    image: tuple[int, ...],
    filters: tuple[int, ...],
    constants: tuple[int, ...] = (1, 2, 3),
    number: int = 0,
    **attributes: Any,
) -> onnx.ModelProto:
    """A ConvInteger; number: all that its filters hold, any numbers without."""
    w = sample(2, filters, "int8", -128, 127)
    arrays = [sample(1, image, "uint8", 0, 255), np.full_like(w, number or w)]
    arrays += [np.array(9, np.uint8), np.array(0, np.int8)]
    attributes = {"pads": SAME, **attributes}
    return model_of("ConvInteger", arrays, attributes, constants=constants)[0]


def dequantized(image: tuple[int, ...], filters: tuple[int, ...]) -> onnx.ModelProto:
    """A Conv between DequantizeLinear and QuantizeLinear, a scale for each filter."""
    made = filters[0]
    constants = {
        "sx": np.float32(0.02),
        "zx": np.uint8(117),
        "w": sample(1, filters, "int8", -127, 127),
        "sw": sample(2, (made,), "float32", 0.001, 0.01),
        "zw": np.zeros(made, np.int8),
        "sy": np.float32(0.9),
        "zy": np.uint8(120),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["a"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["b"], axis=0),
        helper.make_node("Conv", ["a", "b"], ["c"], pads=SAME),
        helper.make_node("QuantizeLinear", ["c", "sy", "zy"], ["y"]),
    ]
    kind = TensorProto.UINT8
    graph = helper.make_graph(
        nodes,
        "quantized",
        [helper.make_tensor_value_info("x", kind, image)],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def test_tiles() -> None:
    assert tile_in(sums((1, 64, 56, 56), (64, 64, 3, 3))) == 4
    assert tile_in(dequantized((1, 64, 28, 28), (96, 64, 3, 3))) == 4


def test_matrices_with_fractions_are_of_no_integers() -> None:
    """4 results of 5 taps; 2 have none."""
    text, image = sums((1, 64, 300), (64, 64, 5), pads=[2, 2]), (1, 64, 40, 40)
    assert tile_in(text) == tile_in(sums(image, (64, 64, 5, 1), pads=[2, 0, 2, 0])) == 2
    assert tile_in(sums((1, 64, 300), (64, 64, 7), pads=[3, 3])) is None


def test_sums_that_need_the_lost_bits_have_smaller_tiles_or_none() -> None:
    assert tile_in(sums((1, 64, 56, 56), (64, 64, 3, 3), number=100)) == 4
    assert tile_in(sums((1, 256, 56, 56), (64, 256, 3, 3), number=100)) == 2
    assert tile_in(sums((1, 2048, 9, 9), (64, 2048, 3, 3), number=127)) is None


@pytest.mark.parametrize(
    ("image", "filters", "attributes"),
    [
        ((1, 64, 56, 56), (64, 64, 3, 3), {"strides": [3, 3]}),
        ((1, 64, 56, 56), (64, 64, 3, 3), {"dilations": [2, 2]}),
        ((1, 64, 56, 56), (64, 16, 3, 3), {"group": 4}),
        ((1, 64, 56, 56), (64, 64, 5, 5), {}),
        ((1, 3, 56, 56), (3, 3, 3, 3), {}),
        ((0, 64, 56, 56), (64, 64, 3, 3), {}),
    ],
    ids=str,
)
def test_others_are_direct(
    image: tuple[int, ...], filters: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    assert tile_in(sums(image, filters, **attributes)) is None


@pytest.mark.parametrize("constants", [(), (1,), (1, 2), (2, 3)])
def test_what_is_not_known_while_compiling_is_direct(constants: Any) -> None:
    assert tile_in(sums((1, 64, 56, 56), (64, 64, 3, 3), constants)) is None


@pytest.mark.parametrize(
    ("target", "tile"),
    [("x86-64-v2", 4), ("x86-64-v4", 4), ("icelake-server", None), ("aarch64", None)],
)
def test_only_pairs(target: str, tile: int | None) -> None:
    """Dot products of bytes do four times as much; other targets have no pairs."""
    assert tile_in(sums((1, 64, 56, 56), (64, 64, 3, 3)), target) == tile


def test_a_program_gives_the_sums_however_it_is_asked() -> None:
    """Of filters and an image that are at the ends of their types."""
    model = sums((1, 70, 13, 15), (40, 70, 3, 3))
    x = sample(4, (1, 70, 13, 15), "uint8", 0, 255)
    x.reshape(-1)[::3] = 255
    w = numpy_helper.to_array(model.graph.initializer[0]).astype(np.int64)
    padded = np.pad(x.astype(np.int64) - 9, [(0, 0), (0, 0), (1, 1), (1, 1)])
    exact = sum(
        np.einsum("nchw,fc->nfhw", padded[..., i : i + 13, j : j + 15], w[..., i, j])
        for i, j in np.ndindex(3, 3)
    )
    for options in (CompileOptions(host()), CompileOptions(host(), exact_conv=True)):
        program = nanoloom.compile(model, options=options, cache=shared_cache())
        (got,) = program({"x0": x}).values()
        assert (got == exact).all() and (got != 0).any()
