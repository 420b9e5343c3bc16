"""Small models from ONNX text, before and after the graph stage."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir

from nanoloom.graph.stage import bind_values, optimize
from nanoloom.linalg.operators import OPERATORS

NO_VALUES: Mapping[str, np.ndarray] = {}


def proto(text: str, opset: int = 21) -> onnx.ModelProto:
    """A model from `name (inputs) => (outputs) <weights> { nodes }`."""
    head = f'<ir_version: 10, opset_import: ["" : {opset}]>'
    return onnx.parser.parse_model(f"{head}\n{text}")


def optimized(
    text: str | onnx.ModelProto,
    values: Mapping[str, np.ndarray] = NO_VALUES,
    opset: int = 21,
    without: tuple[str, ...] = (),
) -> ir.Graph:
    """The graph when the stage is done; `without`: operators taken for unknown."""
    model = ir.from_proto(proto(text, opset) if isinstance(text, str) else text)
    bind_values(model, values)
    return optimize(model, OPERATORS.keys() - set(without)).graph


def operators(graph: ir.Graph) -> list[str]:
    """The operators' names, in order."""
    return [node.op_type for node in graph]


def constant(graph: ir.Graph, name: str) -> np.ndarray:
    """The array of an initializer."""
    tensor = graph.initializers[name].const_value
    assert tensor is not None
    return tensor.numpy()


def shapes(graph: ir.Graph) -> dict[str, tuple[int, ...]]:
    """The shape of every node's output by name."""
    return {
        value.name or "": tuple(int(d) for d in value.shape.dims)  # type: ignore[union-attr,arg-type]
        for node in graph
        for value in node.outputs
        if value.name
    }
