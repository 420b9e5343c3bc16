"""Products that the compiler computes in integers, once their inputs are of 8 bits.

The conditions are those of graph/integer_products.py, asked of a model in floats: a
constant weight, no factors, a bias of one number a column, a sum that 32 bits hold.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.problems import Problem
from nanoloom.graph.integer_products import DEEPEST, NO_BIAS, TOO_DEEP
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.types import is_static, shape_of

PRODUCTS = {"Conv", "Gemm", "MatMul"}
NO_CONSTANT = "its weight is no constant"
NO_FACTORS = "its alpha or beta is not 1, or its first input is transposed"
NOT_FLOAT32 = "its weight is not of float32"
ASKED = "--keep-float names it"


@dataclass(frozen=True)
class Layer:
    """A product.  axis: of its weight, along which each channel has a scale."""

    node: ir.Node
    axis: int

    @property
    def name(self) -> str:
        return self.node.name or ""

    @property
    def weight(self) -> ir.Value:
        found = self.node.inputs[1]
        assert found is not None
        return found

    @property
    def bias(self) -> ir.Value | None:
        return self.node.inputs[2] if len(self.node.inputs) > 2 else None


def candidates(
    graph: ir.Graph, kept: Collection[str] = ()
) -> tuple[dict[str, Layer], list[Problem]]:
    """The layers by their names, and the products that are none, with the reason.

    kept: names of nodes that stay in floats.
    """
    layers: dict[str, Layer] = {}
    floats: list[Problem] = []
    for node in graph:
        if not is_tensor_op(node, PRODUCTS):
            continue
        why = ASKED if node.name in kept else reason(node)
        if why:
            floats.append(Problem(node.name or "", why, "", node.op_type))
        else:
            layers[node.name or ""] = Layer(node, channel_axis(node))
    return layers, floats


def channel_axis(node: ir.Node) -> int:
    """Of the weight: filters of a convolution, columns of a matrix."""
    if node.op_type == "Conv":
        return 0
    return 0 if node.op_type == "Gemm" and number(node, "transB", 0) else 1


def number(node: ir.Node, name: str, default: float) -> float:
    """A numeric attribute."""
    given = node.attributes.get(name)
    return default if given is None else float(given.value)


def constant(value: ir.Value | None) -> ir.TensorProtocol | None:
    """A weight of the model that nobody gives at a call."""
    if value is None or value.is_graph_input():
        return None
    return value.const_value


def reason(node: ir.Node) -> str:
    """Why a product cannot be computed in integers, "" if it can."""
    weighed, weight = node.inputs[1], constant(node.inputs[1])
    if weighed is None or weight is None:
        return NO_CONSTANT
    if weight.dtype != ir.DataType.FLOAT:
        return NOT_FLOAT32
    if node.op_type == "Gemm":
        factors = {number(node, name, 1) for name in ("alpha", "beta")}
        if factors != {1.0} or number(node, "transA", 0):
            return NO_FACTORS
    axis = channel_axis(node)
    shape = shape_of(weighed)
    if len(shape) != 2 and node.op_type != "Conv":
        return "its weight has more than two dimensions"
    if weight.size == 0:
        return "its weight is empty"
    if weight.size // shape[axis] > DEEPEST:
        return TOO_DEEP
    return "" if has_plain_bias(node, shape[axis]) else NO_BIAS


def has_plain_bias(node: ir.Node, channels: int) -> bool:
    """No bias, or a constant of one number a channel."""
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    if bias is None:
        return True
    known = constant(bias)
    return known is not None and known.size == channels


def vector_added(node: ir.Node, value: ir.Value) -> bool:
    """Whether a node adds one number a column, or one number, to a value."""
    if not is_tensor_op(node, {"Add"}):
        return False
    other = next((x for x in node.inputs if x is not value), None)
    known = constant(other)
    if known is None or other is None or not is_static(other):
        return False
    return known.size == 1 or shape_of(other)[-1] == known.size


def weights_of(layer: Layer) -> np.ndarray:
    """The weight as an array."""
    known = constant(layer.weight)
    assert known is not None
    return known.numpy()
