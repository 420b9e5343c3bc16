"""Small models for the tests of the frontend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from nanoloom.errors import Error, ModelError
from nanoloom.frontend.onnx import load

FLOAT = TensorProto.FLOAT
OPSET = 18


def value(
    name: str, shape: Sequence[int | str | None], dtype: int = FLOAT
) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def weight(name: str, shape: tuple[int, ...], seed: int = 0) -> onnx.TensorProto:
    array = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return numpy_helper.from_array(array, name)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    weights: Sequence[onnx.TensorProto] = (),
    *,
    functions: Sequence[onnx.FunctionProto] = (),
    opset: int = OPSET,
    domains: Sequence[str] = (),
    ir_version: int = 9,
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "graph", inputs, outputs, weights)
    return helper.make_model(
        graph,
        functions=functions,
        opset_imports=[
            helper.make_opsetid("", opset),
            *(helper.make_opsetid(domain, 1) for domain in domains),
        ],
        ir_version=ir_version,
    )


def linear(rows: int = 37, columns: int = 53) -> onnx.ModelProto:
    """y = x @ w + b, with names for the nodes and a weight of more than a page."""
    return model(
        [
            helper.make_node("MatMul", ["x", "w"], ["xw"], name="product"),
            helper.make_node("Add", ["xw", "b"], ["y"]),
        ],
        [value("x", ["batch", rows])],
        [value("y", ["batch", columns])],
        [weight("w", (rows, columns)), weight("b", (columns,), seed=1)],
    )


def unary(name: str = "x", output: str = "y", operator: str = "Relu") -> onnx.NodeProto:
    return helper.make_node(operator, [name], [output])


def chain(nodes: Sequence[onnx.NodeProto], **options: object) -> onnx.ModelProto:
    """x float32 (2, 3) to y, through the given nodes."""
    return model(nodes, [value("x", [2, 3])], [value("y", [2, 3])], **options)  # type: ignore[arg-type]


def branches() -> onnx.ModelProto:
    """An If whose branches hold weights of their own and use outer values."""
    bodies = {
        f"{name}_branch": helper.make_graph(
            [
                helper.make_node("MatMul", ["x", f"{name}_w"], [f"{name}_xw"]),
                helper.make_node("Identity", [f"{name}_xw"], [f"{name}_y"]),
            ],
            name,
            [],
            [value(f"{name}_y", [2, 40])],
            [weight(f"{name}_w", (40, 40), seed=len(name))],
        )
        for name in ("then", "else")
    }
    return model(
        [helper.make_node("If", ["flag"], ["y"], **bodies)],
        [value("x", [2, 40]), value("flag", [], TensorProto.BOOL)],
        [value("y", [2, 40])],
    )


def calls(*, opset: int = OPSET) -> onnx.ModelProto:
    """Two calls of a function, which calls another one and has an attribute."""
    inner = helper.make_function(
        "local",
        "Twice",
        ["a"],
        ["r"],
        [helper.make_node("Add", ["a", "a"], ["r"])],
        [helper.make_opsetid("", opset)],
    )
    leaky = helper.make_node("LeakyRelu", ["t"], ["r"])
    reference = leaky.attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT)
    reference.ref_attr_name = "slope"
    outer = helper.make_function(
        "local",
        "Layer",
        ["a"],
        ["r"],
        [helper.make_node("Twice", ["a"], ["t"], domain="local"), leaky],
        [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)],
        ["slope"],
    )
    return model(
        [
            helper.make_node("Layer", ["x"], ["m"], "first", domain="local", slope=0.5),
            helper.make_node("Layer", ["m"], ["y"], domain="local", slope=0.25),
        ],
        [value("x", [2, 3])],
        [value("y", [2, 3])],
        functions=[inner, outer],
        domains=["local"],
    )


def refusal(source: object, kind: type[Error] = ModelError, **options: int) -> str:
    """The one sentence with which a model is refused."""
    with pytest.raises(kind) as caught:
        load(source, **options)  # type: ignore[arg-type]
    text = str(caught.value)
    assert "\n" not in text
    assert caught.value.where
    assert caught.value.hint
    return text
