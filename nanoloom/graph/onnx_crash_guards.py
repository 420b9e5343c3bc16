"""What ends the process inside ONNX's shape inference, or never leaves it: refused
before it sees it."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from nanoloom.errors import ModelError
from nanoloom.graph.einsum_equation import equation_fault


def require_no_crash(node: ir.Node) -> None:
    """Raise ModelError for a node that ONNX's inference reads out of bounds for, or
    goes on with for ever."""
    rule = RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    reason = rule(node) if rule is not None else ""
    if reason:
        raise ModelError(reason, where=f"node {node.name} ({node.op_type})")


def split(node: ir.Node) -> str:
    count = node.attributes.get("num_outputs")
    if count is None or count.as_int() == len(node.outputs):
        return ""
    return f"its num_outputs is {count.as_int()}, it has {len(node.outputs)} outputs"


def gather(node: ir.Node) -> str:
    count = node.attributes.get("batch_dims")
    x = node.inputs[0] if node.inputs else None
    if count is None or x is None or x.shape is None:
        return ""
    rank, number = x.shape.rank(), count.as_int()
    if 0 <= number < max(rank, 1):
        return ""
    return f"its batch_dims are {number}, its input has {rank} dimensions"


def einsum(node: ir.Node) -> str:
    equation = node.attributes.get("equation")
    return equation_fault(equation.as_string(), len(node.inputs)) if equation else ""


RULES: dict[str, Callable[[ir.Node], str]] = {
    "Einsum": einsum,
    "GatherND": gather,
    "Split": split,
}
