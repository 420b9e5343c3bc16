"""Declared shapes are hints: what nodes make of their inputs counts."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import nanoloom
from nanoloom.cache import Cache

HEAD = '<ir_version: 10, opset_import: ["" : 18]>'
CHAIN = f"""{HEAD} g (float[n, 3] x, bool on) => (float[n, 6] y) {{
    wide = Concat <axis = 1> (x, x)
    half = If (on) <
        then_branch = a () => (float[n, 6] kept) {{ kept = Neg (wide) }},
        else_branch = b () => (float[n, 6] less) {{ less = Relu (wide) }}>
    trips = Constant <value = int64 {{3}}> ()
    last = Loop (trips, , half) <
        body = c (int64 i, bool before, float[n, 6] state)
            => (bool after, float[n, 6] next) {{
            after = Identity (before)
            next = Add (state, state)
        }}>
    turned = Transpose (last)
    y = Transpose (turned)
}}"""


def drawn(rng: np.random.Generator) -> list[int | str]:
    """Any shape at all."""
    sizes: list[int | str] = [-1, 0, 1, 3, 6, 7, "n", "other", "?"]
    rank = int(rng.integers(0, 5))
    return [sizes[i] for i in rng.integers(0, len(sizes), rank)]


def declare(graph: onnx.GraphProto, rng: np.random.Generator) -> None:
    """Give all values of a graph and its bodies, but inputs of the model, any shape."""
    made = [name for node in graph.node for name in node.output if name]
    outputs = {x.name for x in graph.output}
    del graph.value_info[:]
    for name in made:
        if name not in outputs and name != "trips":
            info = helper.make_tensor_value_info(name, TensorProto.FLOAT, drawn(rng))
            graph.value_info.append(info)
    for value in graph.output:
        kind = value.type.tensor_type.elem_type
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind, drawn(rng)))
    for node in graph.node:
        for attribute in node.attribute:
            if not attribute.HasField("g"):
                continue
            for value in attribute.g.input[2:]:
                made_up = helper.make_tensor_value_info(value.name, 1, drawn(rng))
                value.CopyFrom(made_up)
            declare(attribute.g, rng)


@pytest.mark.drawn(one_in=2)
@pytest.mark.parametrize("seed", range(12))
def test_any_shape_is_declared_anywhere(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    model = parser.parse_model(CHAIN)
    declare(model.graph, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nanoloom.ModelWarning)
        program = nanoloom.compile(model, cache=Cache(tmp_path))
        for rows in (4, 9):
            x = rng.standard_normal((rows, 3)).astype(np.float32)
            wide = np.concatenate([x, x], axis=1)
            for on, half in ((True, -wide), (False, np.maximum(wide, 0))):
                made = program({"x": x, "on": np.array(on)})["y"]
                assert np.array_equal(made, half * 8)


def recurrent(operator: str, gates: int, direction: str) -> onnx.ModelProto:
    """As exporters write it of a sequence of 7 steps, with an open length."""
    rng = np.random.default_rng(gates)
    ways = 2 if direction == "bidirectional" else 1
    weights = [
        numpy_helper.from_array(
            (rng.standard_normal((ways, gates * 5, k)) * 0.3).astype(np.float32), name
        )
        for name, k in (("W", 4), ("R", 5))
    ]
    axes = numpy_helper.from_array(np.array([0, 0, -1]), "shape")
    nodes = [
        helper.make_node(
            operator, ["x", "W", "R"], ["Y"], hidden_size=5, direction=direction
        ),
        helper.make_node("Transpose", ["Y"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["t", "shape"], ["getitem"]),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [info("x", TensorProto.FLOAT, ["steps", 3, 4])],
        [info("getitem", TensorProto.FLOAT, [7, 3, 5 * ways])],
        [*weights, axes],
        value_info=[info("Y", TensorProto.FLOAT, [7, ways, 3, 5])],
    )
    opset = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opset, ir_version=10)


@pytest.mark.drawn
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize(("operator", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_a_recurrence_of_any_length(
    operator: str, gates: int, direction: str, tmp_path: Path
) -> None:
    from onnx.reference import ReferenceEvaluator

    model = recurrent(operator, gates, direction)
    reference = ReferenceEvaluator(model)
    program = nanoloom.compile(model, cache=Cache(tmp_path))
    rng = np.random.default_rng(0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", nanoloom.ModelWarning)
        for steps in (7, 1, 11, 30):
            x = rng.standard_normal((steps, 3, 4)).astype(np.float32)
            (want,) = reference.run(None, {"x": x})
            made = program({"x": x})["getitem"]
            assert made.shape == want.shape
            assert np.abs(want).max() > 0.1
            # Gates of 9 products, in steps that each halve an error at least.
            assert np.allclose(made, want, rtol=0, atol=1e-6 * 16)
    assert program.open.reason == ""
    assert [str(w.message) for w in told] == [
        "shapes that the model declares are not what its nodes give: Y is declared as "
        f"[7, {1 + (direction != 'forward')}, 3, 5], it has another size on axis 0; "
        f"getitem is declared as [7, 3, {5 + 5 * (direction != 'forward')}], it has "
        "another size on axis 0"
    ]


def test_a_dimension_below_zero_is_open(tmp_path: Path) -> None:
    text = f"{HEAD} g (float[m, 3, k, k] x) => (float[m] y) {{ y = Relu (x) }}"
    model = parser.parse_model(text)
    for value, dims in (
        (model.graph.input[0], (0, 2, 3)),
        (model.graph.output[0], (0,)),
    ):
        for axis in dims:
            value.type.tensor_type.shape.dim[axis].dim_value = -1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nanoloom.ModelWarning)
        program = nanoloom.compile(model, cache=Cache(tmp_path))
        assert program.inputs[0].shape == ("x.0", 3, "x.2", "x.3")
        x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
        assert np.array_equal(program({"x": x})["y"], np.maximum(x, 0))


@pytest.mark.parametrize("said", ["", "p, q", "3, 2", "2, 3, 1"])
def test_a_weight_that_is_an_output_keeps_its_shape(said: str, tmp_path: Path) -> None:
    """Whatever the output is declared as."""
    model = parser.parse_model(
        f"""{HEAD} g (float[4, 2] x) => (float[a, b] y, float[b, a] z, float[{said}] w)
        <float[2, 3] w = {{1, 2, 3, 4, 5, 6}}>
        {{ y = MatMul(x, w) z = Transpose(w) }}"""
    )
    x = np.eye(4, 2, dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = nanoloom.compile(model, threads=1, cache=Cache(tmp_path))({"x": x})
    w = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    for name, wanted in {"y": x @ w, "z": w.T, "w": w}.items():
        np.testing.assert_array_equal(made[name], wanted)
