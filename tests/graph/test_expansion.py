"""ONNX functions without a lowering of their own: their bodies take their place."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx.reference import ReferenceEvaluator

from nanoloom.graph.functions import expand
from nanoloom.graph.unique_names import unique_names
from tests.graph.models import operators, optimized, proto


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("Relu", ""), ("Softplus", ""), ("Celu", "<alpha=0.7>"), ("Celu", ""),
        ("HardSwish", ""), ("LeakyRelu", "<alpha=0.2>"), ("Gelu", ""),
        ("Gelu", '<approximate="tanh">'), ("Softmax", "<axis=0>"), ("Softmax", ""),
        ("LogSoftmax", "<axis=1>"), ("MeanVarianceNormalization", "<axes=[0,1]>"),
        ("ThresholdedRelu", "<alpha=0.3>"), ("Elu", ""), ("Shrink", "<lambd=0.4>"),
    ],
)  # fmt: skip
def test_a_body_says_the_same(op: str, attributes: str) -> None:
    """Run by ONNX's reference: the node itself, and what stands in its place."""
    model = proto(f"g (float[3,5] x) => (float[3,5] y) {{ y = {op}{attributes}(x) }}")
    expanded = ir.from_proto(model)
    graph = expanded.graph
    (node,) = graph
    assert expand(graph, node, {"": 21}, unique_names(graph))
    assert op not in operators(graph)
    x = np.random.default_rng(1).standard_normal((3, 5)).astype(np.float32)
    (right,) = ReferenceEvaluator(model).run(None, {"x": x})
    (got,) = ReferenceEvaluator(ir.to_proto(expanded)).run(None, {"x": x})
    assert np.allclose(got, right, rtol=1e-5, atol=1e-6)
    assert not np.allclose(np.roll(got, 1), right, rtol=1e-5, atol=1e-6)


def test_new_nodes_carry_the_old_ones_name() -> None:
    model = proto("g (float[3] x) => (float[3] y) { y = Softplus(x) }")
    model.graph.node[0].name = "encoder/activation"
    graph = optimized(model, without=("Softplus",))
    assert len(graph) > 1
    assert all(node.name.startswith("encoder/activation") for node in graph)


def test_two_expansions_do_not_share_a_name() -> None:
    graph = optimized(
        """g (float[3] x) => (float[3] y)
        { a = Softplus(x) b = Softplus(a) y = Softplus(b) }""",
        without=("Softplus",),
    )
    names = [node.name for node in graph]
    values = [value.name for node in graph for value in node.outputs]
    assert len(set(names)) == len(names)
    assert len(set(values)) == len(values)
    assert graph.outputs[0].name == "y"


def test_a_body_that_depends_on_types() -> None:
    """Clip's body is made for the inputs that are there, and their type."""
    graph = optimized(
        "g (double[3] x) => (double[3] y) <double low = {0}> { y = Clip(x, low) }",
        without=("Clip",),
    )
    assert "Clip" not in operators(graph)
    assert graph.outputs[0].dtype == ir.DataType.DOUBLE


def test_an_operator_without_a_body_stays() -> None:
    model = ir.from_proto(proto("g (float[3] x) => (float[3] y) { y = Sin(x) }"))
    (node,) = model.graph
    assert not expand(model.graph, node, {"": 21}, unique_names(model.graph))
    assert operators(model.graph) == ["Sin"]


def test_a_foreign_operator_stays() -> None:
    model = proto("g (float[3] x) => (float[3] y) { y = Relu(x) }")
    model.graph.node[0].domain = "com.example"
    model.opset_import.append(onnx.helper.make_opsetid("com.example", 1))
    graph = ir.from_proto(model).graph
    (node,) = graph
    assert not expand(graph, node, {"": 21, "com.example": 1}, unique_names(graph))
