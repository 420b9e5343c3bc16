"""Operators by what they make of the order of dimensions."""

from __future__ import annotations

from collections.abc import Set

import onnx_ir as ir

from nanoloom.graph.operator_families import ELEMENTWISE, words

# Of pixels and their channels
SPATIAL = words(
    """
    Conv ConvInteger ConvTranspose QLinearConv MaxPool AveragePool LpPool
    GlobalAveragePool GlobalMaxPool GlobalLpPool
    """
)
# An element of each input, wherever it lies
ONE_TO_ONE = ELEMENTWISE | {"Dropout"}


def is_tensor_op(node: ir.Node, names: Set[str]) -> bool:
    """Whether a node is one of ONNX's operators on tensors."""
    return node.domain in ("", "ai.onnx") and node.op_type in names
