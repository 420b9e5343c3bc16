"""Nodes take the place of one, in any graph; what is not honoured is refused."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from nanoloom.errors import Unsupported
from nanoloom.frontend.microsoft.replacement import VERSION
from nanoloom.frontend.onnx import load
from nanoloom.frontend.problems import problems
from nanoloom.graph.stage import optimize
from nanoloom.linalg.operators import OPERATORS
from tests.frontend import models
from tests.frontend.microsoft.single import DOMAIN, model_of, of, run

Array = np.ndarray
X = np.zeros((2, 3), np.float32)


def gelu(x: str, output: str, **options: object) -> onnx.NodeProto:
    return helper.make_node("FastGelu", [x], [output], domain=DOMAIN, **options)


def test_names_and_versions() -> None:
    nodes = [
        helper.make_node(
            "BiasGelu", ["x", "x"], ["a"], domain=DOMAIN, name="layer/act"
        ),
        gelu("a", "y", name="layer/act/Gelu"),
    ]
    model = load(models.chain(nodes, domains=[DOMAIN]))
    assert [(n.name, n.op_type, n.domain, n.version) for n in model.graph] == [
        ("layer/act/Add", "Add", "", VERSION),
        ("layer/act/Gelu_2", "Gelu", "", VERSION),
        ("layer/act/Gelu/Gelu", "Gelu", "", VERSION),
    ]
    assert [x.name for x in model.graph.outputs] == ["y"]
    assert problems(model) == []
    names = [x.name for node in model.graph for x in node.outputs]
    assert len(set(names)) == len(names) and "a" in names


def test_inside_of_branches() -> None:
    proto = models.branches()
    inner = proto.graph.node[0].attribute[0].g.node[1]
    inner.op_type, inner.domain = "FastGelu", DOMAIN
    proto.opset_import.add(domain=DOMAIN, version=1)
    model = load(proto)
    assert problems(model) == []
    assert "Gelu" in [node.op_type for node in model.graph.all_nodes()]


def test_one_value_for_two_outputs() -> None:
    """A sum that is the input itself, and an output that nobody reads."""
    inputs = [X + 1, X, np.ones(3, np.float32)]
    model, feeds = model_of(
        "SkipLayerNormalization", inputs, {"epsilon": 0.5},
        outputs=(True, False, False, True),
    )  # fmt: skip
    ours, theirs = of(model, feeds)
    assert [x.tolist() for x in ours] == [x.tolist() for x in theirs]
    model.graph.output.pop()
    assert len(of(model, feeds)[0]) == 1


@pytest.mark.parametrize(
    ("name", "inputs", "attributes", "reason"),
    [
        ("Gelu", [X], {"hardness": 3}, "its attribute hardness is not supported"),
        ("Gelu", [X, X], {}, "its input 1 (x1) is not supported"),
        ("QuickGelu", [X], {"alpha": 2}, "its attribute alpha is no FLOAT"),
        ("BiasGelu", [X], {}, "its input 1 is missing"),
        ("QLinearSoftmax", [X.astype(np.uint8), X[0, 0], None, X[0, 0]], {},
         "it lacks the attribute opset"),
        ("BeamSearch", [X], {}, "searches with a decoder that it calls once for each"),
        ("Nonsense", [X], {}, "is an operator of ONNX Runtime, not of ONNX"),
    ],
)  # fmt: skip
def test_refusals(
    name: str, inputs: list[Array], attributes: dict[str, object], reason: str
) -> None:
    with pytest.raises(Unsupported) as caught:
        run(name, inputs, **attributes)
    assert f"node tested (com.microsoft::{name}): {reason}" in str(caught.value)


def test_an_output_that_is_not_computed() -> None:
    inputs = [X, X, np.ones(3, np.float32)]
    with pytest.raises(Unsupported, match=r"its output 1 \(y1\) is not supported"):
        run("SkipSimplifiedLayerNormalization", inputs, outputs=(True, True))


@pytest.mark.parametrize("domain", ["com.microsoft.nchwc", "com.ms.internal.nhwc"])
def test_layouts_of_a_machine(domain: str) -> None:
    node = helper.make_node("Conv", ["x"], ["y"], domain=domain)
    (problem,) = problems(load(models.chain([node], domains=[domain])))
    assert problem.reason.startswith("lays images out for the machine on which")
    assert "the graph optimization level extended or lower" in problem.hint


def test_a_rank_that_nothing_tells() -> None:
    foreign = helper.make_node("Foreign", ["x"], ["a"], domain="other")
    node = helper.make_node("FusedMatMul", ["a", "a"], ["y"], domain=DOMAIN, transA=1)
    found = problems(load(models.chain([foreign, node], domains=[DOMAIN, "other"])))
    assert [p.operator for p in found] == [
        "other::Foreign",
        "com.microsoft::FusedMatMul",
    ]
    assert "the number of dimensions of a is not known before it" in found[1].reason


def test_types_come_through_other_operators() -> None:
    """Nothing is declared between input and output."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
        helper.make_node("Split", ["t"], ["a", "b"], axis=0, num_outputs=2),
        helper.make_node("FusedMatMul", ["a", "a"], ["y"], domain=DOMAIN, transB=1),
    ]
    inputs = [models.value("x", ["n", 4])]
    outputs = [onnx.ValueInfoProto(name="y")]
    model = load(models.model(nodes, inputs, outputs, domains=[DOMAIN]))
    assert problems(model) == []
    turned = [n for n in model.graph if n.op_type == "Transpose"][1]
    assert list(turned.attributes["perm"].as_ints()) == [1, 0]


def test_every_unknown_operator_is_named_whatever_the_shapes() -> None:
    """One stands in front of a product whose operands do not fit."""
    nodes = [
        helper.make_node("Nonsense", ["x"], ["a"], domain=DOMAIN, name="first"),
        helper.make_node("MatMul", ["x", "x"], ["b"], name="misfit"),
        helper.make_node("Other", ["a", "b"], ["y"], domain=DOMAIN, name="second"),
    ]
    model = load(models.chain(nodes, domains=[DOMAIN]))
    assert [p.node for p in problems(model)] == ["first", "second"]
    with pytest.raises(Unsupported, match=r"node first .*; and 1 more") as caught:
        optimize(bound(model), OPERATORS.keys())
    assert "fit together" not in str(caught.value)


def bound(model: ir.Model) -> ir.Model:
    """It keeps what is noted of nodes."""
    return model.clone()
