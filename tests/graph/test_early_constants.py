"""What a model computes of constants alone, computed once for all of its sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import nanoloom
from nanoloom.cache import Cache
from nanoloom.graph import evaluate, inference, propagate, value_origin
from nanoloom.graph.early_constants import own_origins, with_early_constants
from nanoloom.model.source import Source
from tests.graph.models import operators, proto

OPEN = """g (float[n,3] x) => (float[n,3] y)
    <float[3] a = {1,2,3}, float[3] b = {10,20,30}>
    { s = Add(a, b) d = Mul(s, s) p = Add(x, d) y = Mul(p, d) }"""


def early(text: str) -> ir.Model:
    return with_early_constants(ir.serde.deserialize_model(proto(text)))


def test_what_no_size_decides_about_is_computed_before_there_are_sizes() -> None:
    model = ir.serde.deserialize_model(proto(OPEN))
    made = with_early_constants(model)
    assert operators(made.graph) == ["Add", "Mul"]
    tensor = made.graph.initializers["d"].const_value
    assert tensor is not None
    assert tensor.numpy().tolist() == [121.0, 484.0, 1089.0]
    assert operators(model.graph) == ["Add", "Mul", "Add", "Mul"]


def test_what_a_size_decides_about_stays() -> None:
    made = early("""g (float[n,3] x) => (int64[2] s, int64[2] t)
        <int64[2] a = {1,1}> { s = Shape(x) b = Add(a, a) t = Add(s, b) }""")
    assert operators(made.graph) == ["Shape", "Add"]


@pytest.mark.parametrize(
    "text",
    [
        # an input with a default, which a call may replace
        """g (float[n,3] x, float[3] a) => (float[n,3] y)
           <float[3] a = {1,2,3}> { d = Mul(a, a) y = Add(x, d) }""",
        # an output of the model, whose declared type is compared with the node's
        """g (float[n,3] x) => (float[n,3] y, float[3] d)
           <float[3] a = {1,2,3}> { d = Mul(a, a) y = Add(x, d) }""",
        # a declared shape with a name, which has a number later
        """g (float[n,3] x) => (float[n,3] y)
           <float[3] a = {1,2,3}, float[n] d> { d = Mul(a, a) y = Add(x, d) }""",
        # what fails: whoever binds the model is told
        """g (float[n,3] x) => (float[n,3] y)
           <float[3] a = {1,2,3}, float[2] b = {1,2}>
           { d = Mul(a, b) y = Add(x, d) }""",
    ],
)
def test_what_another_walk_must_see_stays(text: str) -> None:
    made = early(text)
    assert operators(made.graph) == ["Mul", "Add"]


def test_constants_come_from_values_of_the_same_copy() -> None:
    """Quantized weights are read through the nodes that they were dequantized by."""
    made = early("""g (float[n,2] x) => (float[n,2] y)
        <int8[2] q = {1,2}, float scale = {0.5}>
        { w = DequantizeLinear(q, scale) y = Mul(x, w) }""")
    copies = [made.clone(), made.clone()]
    for copy in copies:
        own_origins(copy)
        origin = value_origin.origin_of(copy.graph.initializers["w"])
        assert origin is not None
        assert origin.op == "DequantizeLinear"
        assert origin.inputs[0] is copy.graph.initializers["q"]


def test_every_shape_gets_the_same_numbers(tmp_path: Path) -> None:
    source = Source(proto(OPEN), Cache(tmp_path))
    assert source.simplified() is source.simplified()
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    program = nanoloom.compile(proto(OPEN), cache=Cache(tmp_path))
    square = np.array([121.0, 484.0, 1089.0], np.float32)
    for rows in (1, 4):
        (made,) = program({"x": x[:rows]}).values()
        np.testing.assert_array_equal(made, (x[:rows] + square) * square)


def test_a_node_is_asked_about_once_however_often_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Names differ, shapes and numbers do not; -0.0 is not 0.0."""
    asked: list[str] = []
    inferred, computed = inference.inferred, evaluate.computed
    monkeypatch.setattr(
        inference, "inferred", lambda *a: asked.append("shape") or inferred(*a)
    )
    monkeypatch.setattr(
        evaluate, "computed", lambda *a: asked.append("numbers") or computed(*a)
    )
    monkeypatch.setattr(inference, "INFERRED", inference.Answers())
    monkeypatch.setattr(evaluate, "COMPUTED", evaluate.Answers())

    def walk(text: str) -> dict[str, np.ndarray]:
        model = ir.serde.deserialize_model(proto(text))
        names = propagate.Names({str(n) for n in model.graph.initializers})
        walk = propagate.Propagation(frozenset(), {"": 17}, names)
        walk.run(model.graph)
        found = model.graph.initializers
        return {n: x.const_value.numpy() for n, x in found.items() if x.const_value}

    found = walk("""g (float[3] x) => (float[3] y)
        <float[1] a = {2}, float[1] b = {2}, float[1] c = {-2}>
        { d = Reciprocal(a) e = Reciprocal(b) f = Reciprocal(c) }""")
    assert asked == ["shape", "numbers", "shape", "numbers"]
    assert [found[n].tolist() for n in "def"] == [[0.5], [0.5], [-0.5]]
    found["d"][0] = 7.0  # a constant is its reader's own
    asked.clear()
    found = walk("""g (float[3] x) => (float[3] y)
        <float[1] p = {2}, float[1] z = {0}, float[1] m = {-0.0}>
        { q = Reciprocal(p) r = Reciprocal(z) s = Reciprocal(m) }""")
    assert found["q"].tolist() == [0.5]
    assert [found["r"].item(), found["s"].item()] == [np.inf, -np.inf]


def test_attributes_and_shapes_tell_nodes_apart() -> None:
    rng = np.random.default_rng(5)
    for _ in range(8):
        axis, low, high = (int(n) for n in rng.integers(0, [2, 3, 6]))
        table = rng.integers(0, 9, (low + 2, high + 2))
        model = onnx.helper.make_model(
            onnx.helper.make_graph(
                [
                    onnx.helper.make_node("Concat", ["t", "t"], ["c"], axis=axis),
                    onnx.helper.make_node("Add", ["x", "c"], ["y"]),
                ],
                "g",
                [onnx.helper.make_tensor_value_info("x", 7, [])],
                [onnx.helper.make_tensor_value_info("y", 7, None)],
                [onnx.numpy_helper.from_array(table, "t")],
            ),
            opset_imports=[onnx.helper.make_opsetid("", 17)],
        )
        made = with_early_constants(ir.serde.deserialize_model(model))
        tensor = made.graph.initializers["c"].const_value
        assert tensor is not None
        expected = np.concatenate([table, table], axis=axis)
        np.testing.assert_array_equal(tensor.numpy(), expected)
