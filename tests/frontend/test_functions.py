"""Functions of a model, put in the place of their calls."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from nanoloom.errors import ModelError, Unsupported
from nanoloom.frontend.onnx import load
from tests.frontend import models

OPSET = [helper.make_opsetid("", models.OPSET), helper.make_opsetid("local", 1)]


def function(name: str, nodes: list[onnx.NodeProto], **options) -> onnx.FunctionProto:
    outputs = options.pop("outputs", ["r"])
    inputs = options.pop("inputs", ["a"])
    opsets = options.pop("opsets", OPSET)
    return helper.make_function(
        "local", name, inputs, outputs, nodes, opsets, **options
    )


def call(name: str, inputs: list[str], outputs: list[str], **attributes):
    return helper.make_node(name, inputs, outputs, domain="local", **attributes)


def calling(nodes, functions, outputs=("y",)) -> onnx.ModelProto:
    made = [models.value(name, [2, 3]) for name in outputs]
    return models.model(
        nodes,
        [models.value("x", [2, 3])],
        made,
        functions=functions,
        domains=["local"],
    )


def run(model: ir.Model, x: np.ndarray) -> list[np.ndarray]:
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    return ReferenceEvaluator(proto).run(None, {"x": x})  # type: ignore[return-value]


X = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)


def test_nested_calls_with_attributes() -> None:
    loaded = load(models.calls())
    assert not loaded.functions
    assert [node.name for node in loaded.graph] == [
        "first/Twice_0/Add_0",
        "first/LeakyRelu_1",
        "Layer_1/Twice_0/Add_0",
        "Layer_1/LeakyRelu_1",
    ]
    wanted = X
    for slope in (np.float32(0.5), np.float32(0.25)):
        wanted = np.where(wanted > 0, 2 * wanted, slope * (2 * wanted))
    (got,) = run(loaded, X)
    np.testing.assert_array_equal(got, wanted)  # powers of two: exact
    assert not np.array_equal(got, 0 * wanted)


def test_omitted_and_passed_through_results() -> None:
    body = [models.unary("a", "q"), models.unary("q", "r", "Neg")]
    made = function("F", body, outputs=["a", "q", "r"])
    nodes = [
        call("F", ["x"], ["", "y"]),
        call("F", ["x"], ["u", "", "w"]),
        call("F", ["w"], ["k"]),
    ]
    loaded = load(calling(nodes, [made], ["y", "u", "w", "k"]))
    assert [value.name for value in loaded.graph.inputs] == ["x"]
    relu = np.maximum(X, 0)
    for got, wanted in zip(run(loaded, X), (relu, X, -relu, -relu), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_default_of_an_attribute() -> None:
    node = helper.make_node("LeakyRelu", ["a"], ["r"])
    reference = node.attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT)
    reference.ref_attr_name = "slope"
    made = function("F", [node])
    made.attribute_proto.append(helper.make_attribute("slope", 0.5))
    nodes = [call("F", ["x"], ["t"]), call("F", ["t"], ["y"], slope=0.25)]
    loaded = load(calling(nodes, [made]))
    slopes = [node.attributes["alpha"].as_float() for node in loaded.graph]
    assert slopes == [0.5, 0.25]


def test_a_call_inside_a_branch_and_a_branch_inside_a_function() -> None:
    flag = onnx.helper.make_tensor("t", onnx.TensorProto.BOOL, [], [True])
    branch = helper.make_graph(
        [models.unary("a", "b", "Neg")], "b", [], [models.value("b", [2, 3])]
    )
    body = [
        helper.make_node("Constant", [], ["flag"], value=flag),
        helper.make_node("If", ["flag"], ["r"], then_branch=branch, else_branch=branch),
    ]
    outer = helper.make_graph(
        [call("F", ["x"], ["z"])], "z", [], [models.value("z", [2, 3])]
    )
    nodes = [
        helper.make_node("Constant", [], ["flag"], value=flag),
        helper.make_node("If", ["flag"], ["y"], then_branch=outer, else_branch=outer),
    ]
    (got,) = run(load(calling(nodes, [function("F", body)])), X)
    np.testing.assert_array_equal(got, -X)


def test_functions_of_another_opset_with_the_same_operators() -> None:
    made = function("F", [models.unary("a", "r")], opsets=[helper.make_opsetid("", 14)])
    loaded = load(calling([call("F", ["x"], ["y"])], [made]))
    assert loaded.opset_imports[""] == models.OPSET


def circle() -> onnx.ModelProto:
    made = [
        function("F", [call("G", ["a"], ["r"])]),
        function("G", [call("F", ["a"], ["r"])]),
    ]
    return calling([call("F", ["x"], ["y"])], made)


def doubling(levels: int) -> onnx.ModelProto:
    made = [function(f"F{levels}", [models.unary("a", "r")])]
    for i in range(levels):
        inner = f"F{i + 1}"
        body = [call(inner, ["a"], ["t"]), call(inner, ["t"], ["r"])]
        made.append(function(f"F{i}", body))
    return calling([call("F0", ["x"], ["y"])], made)


def other_opset() -> onnx.ModelProto:
    node = helper.make_node("ReduceSum", ["a"], ["r"])
    made = function("F", [node], opsets=[helper.make_opsetid("", 11)])
    return calling([call("F", ["x"], ["y"])], [made])


def needs_more() -> onnx.ModelProto:
    made = function(
        "F", [helper.make_node("Add", ["a", "b"], ["r"])], inputs=["a", "b"]
    )
    return calling([call("F", ["x"], ["y"])], [made])


def defined_twice() -> onnx.ModelProto:
    made = function("F", [models.unary("a", "r")])
    return calling([call("F", ["x"], ["y"])], [made, made])


def too_many_inputs() -> onnx.ModelProto:
    made = function("F", [models.unary("a", "r")])
    return calling([call("F", ["x", "x"], ["y"])], [made])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (circle, "function F calls itself"),
        (lambda: doubling(30), "has 1073741824 nodes with its functions expanded"),
        (lambda: doubling(40), "one of more than 32 that call each other"),
        (other_opset, "means opset 11, the model has opset 18"),
        (needs_more, "node F_0/Add_0 (Add): input B must be given"),
        (defined_twice, "function F is defined twice"),
        (too_many_inputs, "node F_0 (F): has 2 inputs, it takes 0 to 1"),
    ],
)
def test_refusals(make, words: str) -> None:
    with pytest.raises(ModelError) as caught:
        load(make())
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_graph_as_an_argument_is_unsupported() -> None:
    graph = helper.make_graph([], "g", [], [])
    made = function("F", [models.unary("a", "r")], attributes=["body"])
    with pytest.raises(Unsupported, match="hands the graph body to a function"):
        load(calling([call("F", ["x"], ["y"], body=graph)], [made]))
