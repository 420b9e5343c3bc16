"""Operators by what they make of the order of dimensions."""

from __future__ import annotations

from collections.abc import Set

import onnx_ir as ir

from nanoloom.graph.operator_families import ELEMENTWISE
from nanoloom.graph.operator_spec import Family
from nanoloom.graph.operator_specs import named

# Of pixels and their channels
SPATIAL = named(lambda spec: spec.family is Family.WINDOW)
# An element of each input, wherever it lies
ONE_TO_ONE = ELEMENTWISE | named(lambda spec: spec.family is Family.ONE_TO_ONE)


def is_tensor_op(node: ir.Node, names: Set[str]) -> bool:
    """Whether a node is one of ONNX's operators on tensors."""
    return node.domain in ("", "ai.onnx") and node.op_type in names
