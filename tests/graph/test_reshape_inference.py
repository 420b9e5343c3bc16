"""Shapes of Reshapes, those of tensors without elements among them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx_ir import serde

import nanoloom
from nanoloom.cache import Cache
from nanoloom.errors import ModelError
from nanoloom.graph.reshape_inference import reshaped, shape_of_as_many

MODELS = Path(__file__).parents[1] / "models"


@pytest.mark.parametrize(
    ("given", "target", "made"),
    [
        ((0, 8, 768), (0, -1, 12, 64), (0, 8, 12, 64)),
        ((0, 8, 12, 64), (0, 8, -1), (0, 8, 768)),
        ((0, 768), (-1, 768), (0, 768)),
        ((2, 0), (-1, 4), (0, 4)),
        ((2, 0, 6), (0, -1, 4), (0, 3, 4)),
        ((0, 5), (0, -1, 2), None),
        ((0, 5), (2, 5), None),
        ((0,), (-1, -1), None),
        ((0,), (0, -2), None),
        ((2, 12), (2, -1, 4), (2, 3, 4)),
        ((2, 12), (24,), (24,)),
        ((2, 12), (-1, 5), None),
        ((2, 12), (0, -1), None),
        ((2, 12), (5, 5), None),
        ((), (-1,), (1,)),
        ((), (), ()),
    ],
)
def test_what_is_left_of_the_others(
    given: tuple[int, ...], target: tuple[int, ...], made: tuple[int, ...] | None
) -> None:
    assert shape_of_as_many(given, target) == made


def reshape(batch: int, target: str, allowzero: int = 0) -> onnx.ModelProto:
    return parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 19]>
        g (float[{batch}, 8, 6] x) => (float[a, b, c, d] y)
        <int64[4] t = {{{target}}}> {{ y = Reshape<allowzero = {allowzero}>(x, t) }}
    """)


def test_shapes_are_those_of_onnx() -> None:
    """Its inference has the same wherever we have one, if there are elements."""
    rng, found = np.random.default_rng(3), 0
    for _ in range(900):
        given = rng.choice([1, 2, 3, 4, 6], rng.integers(4)).tolist()
        target = rng.choice([-1, 0, 1, 2, 3, 4, 6, 12], rng.integers(4)).tolist()
        node = onnx.helper.make_node("Reshape", ["x", "t"], ["y"])
        if rng.integers(3) == 0:
            zero = int(rng.integers(2))
            node.attribute.append(onnx.helper.make_attribute("allowzero", zero))
        numbers = onnx.numpy_helper.from_array(np.array(target, np.int64), "t")
        values = [
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
            for name, shape in (("x", given), ("y", None))
        ]
        graph = onnx.helper.make_graph([node], "g", values[:1], values[1:], [numbers])
        model = onnx.helper.make_model(graph)
        made = reshaped(next(iter(serde.deserialize_model(model).graph)))
        if made is not None:
            asked = onnx.shape_inference.infer_shapes(model, strict_mode=True)
            dims = asked.graph.output[0].type.tensor_type.shape.dim
            assert made == tuple(d.dim_value for d in dims), (given, target)
            found += 1
    assert found > 100


def test_zeros_are_copied_unless_that_leaves_elements(tmp_path: Path) -> None:
    def shape(model: onnx.ModelProto, batch: int) -> tuple[int, ...]:
        program = nanoloom.compile(model, cache=Cache(tmp_path))
        return program({"x": np.zeros((batch, 8, 6), np.float32)})["y"].shape

    assert shape(reshape(0, "0, -1, 2, 3"), 0) == (0, 8, 2, 3)
    assert shape(reshape(0, "0, 0, 2, 3"), 0) == (0, 8, 2, 3)
    assert shape(reshape(0, "0, -1, 2, 3", 1), 0) == (0, 8, 2, 3)
    assert shape(reshape(0, "5, 0, 2, 3"), 0) == (5, 0, 2, 3)
    assert shape(reshape(2, "0, -1, 2, 3"), 2) == (2, 8, 2, 3)
    with pytest.raises(ModelError, match="without elements cannot take the shape"):
        shape(reshape(0, "1, 8, 2, 3"), 0)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("bert-base_opset17_torchscript", (0, 8)),
        ("bert-base_opset23_dynamo", (0, 8)),
        ("gpt2_opset17_torchscript", (2, 0)),
    ],
)
def test_a_network_runs_on_nothing(
    name: str, shape: tuple[int, int], tmp_path: Path
) -> None:
    program = nanoloom.compile(MODELS / f"{name}.onnx", cache=Cache(tmp_path))
    feeds = {x.name: np.zeros(shape, x.dtype) for x in program.inputs}
    first = next(iter(program(feeds).values()))
    assert first.shape[:2] == shape and first.shape[2] > 0


@pytest.mark.parametrize("declared", [(0,), (0, 6), (3, 0), (6,), (2, 3)])
def test_a_declared_shape_is_a_hint(declared: tuple[int, ...], tmp_path: Path) -> None:
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 18]>'
        "g (float[2, 3] x) => (float[?] y) { y = Flatten <axis = 0> (x) }"
    )
    info = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, declared)
    model.graph.output[0].CopyFrom(info)
    with pytest.warns(nanoloom.ModelWarning, match="y is declared as"):
        program = nanoloom.compile(model, cache=Cache(tmp_path))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(program({"x": x})["y"], x.reshape(1, 6))
