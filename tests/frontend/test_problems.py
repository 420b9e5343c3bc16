"""All operators that cannot be compiled are listed at once, each with a way out."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from nanoloom.errors import Unsupported
from nanoloom.frontend.onnx import load
from nanoloom.frontend.problems import Problem, problems, refuse
from tests.frontend import models


def found(*nodes: onnx.NodeProto, **options: object) -> list[Problem]:
    return problems(load(models.chain(nodes, **options)))


def test_a_model_of_known_operators_has_none() -> None:
    for make in (models.linear, models.branches, models.calls):
        assert problems(load(make())) == []


def test_all_are_listed() -> None:
    nodes = [
        helper.make_node("Magic", ["x"], ["a"], domain="my.domain"),
        helper.make_node("Rleu", ["a"], ["b"], name="typo"),
        helper.make_node("FusedGelu", ["b"], ["c"], domain="com.microsoft"),
        helper.make_node("Gelu", ["c"], ["y"]),
    ]
    problem = found(*nodes, domains=["my.domain", "com.microsoft"])
    assert [p.node for p in problem] == ["Magic_0", "typo", "FusedGelu_2", "Gelu_3"]
    assert [p.operator for p in problem] == [
        "my.domain::Magic", "Rleu", "com.microsoft::FusedGelu", "Gelu"
    ]  # fmt: skip
    words = [
        ("domain my.domain is unknown", "model-local function"),
        ("is no operator of ai.onnx", "did you mean Relu?"),
        ("an operator of ONNX Runtime", "before ONNX Runtime's optimizer"),
        ("only from opset 20 on, the model has 18", "opset_version=20 or later"),
    ]
    for one, (reason, hint) in zip(problem, words, strict=True):
        assert reason in one.reason
        assert hint in one.hint
        assert str(one).startswith(f"{one.node} ({one.operator}): ")


def test_operators_inside_of_branches() -> None:
    proto = models.branches()
    proto.graph.node[0].attribute[0].g.node[1].op_type = "Nothing"
    assert [p.node for p in problems(load(proto))] == ["If_0/Nothing_1"]


def test_operators_inside_of_functions() -> None:
    proto = models.calls()
    proto.functions[0].node[0].op_type = "Nothing"
    names = [p.node for p in problems(load(proto))]
    assert names == ["first/Twice_0/Nothing_0", "Layer_1/Twice_0/Nothing_0"]


def test_an_operator_that_was_removed() -> None:
    scales = helper.make_node("Constant", [], ["s"], value_floats=[1.0, 1.0])
    node = helper.make_node("Upsample", ["x", "s"], ["y"])
    (problem,) = found(scales, node, opset=13)
    assert "was removed from ONNX in opset 10" in problem.reason


def test_operators_that_nanoloom_adds() -> None:
    node = helper.make_node("FusedGelu", ["x"], ["y"], domain="com.microsoft")
    model = load(models.chain([node], domains=["com.microsoft"]))
    assert len(problems(model)) == 1
    assert problems(model, also={("com.microsoft", "FusedGelu")}) == []


def test_values_that_are_no_tensors_of_numbers() -> None:
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [2])
    text = models.value("t", [2], TensorProto.STRING)
    nodes = [
        helper.make_node("SequenceLength", ["s"], ["n"]),
        helper.make_node("Foreign", ["t"], ["u"], domain="other"),
    ]
    outputs = [
        models.value("n", [], TensorProto.INT64),
        models.value("u", [2], TensorProto.STRING),
    ]
    made = load(models.model(nodes, [sequence, text], outputs, domains=["other"]))
    assert [(p.node, p.reason) for p in problems(made)][:2] == [
        ("input s", "is a sequence, and only a call knows how many tensors are in it"),
        ("output u", "holds strings"),
    ]


def test_refuse_names_the_first_and_counts_the_rest() -> None:
    refuse([])
    one = Problem("a", "is odd", "do it", "Odd")
    with pytest.raises(Unsupported) as caught:
        refuse([one, one, one])
    wanted = "node a (Odd): is odd; do it; and 2 more (nanoloom check lists them)"
    assert str(caught.value) == wanted
