"""Element types and shapes of what operators of users give."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from nanoloom.graph.types import is_static

Rule = Callable[[ir.Node], "list[tuple[ir.DataType, tuple[int, ...]]]"]
RULES: dict[tuple[str, str], Rule] = {}


def complete(node: ir.Node) -> None:
    """Give the outputs their types once the inputs have numbers for sizes."""
    rule = RULES.get((node.domain, node.op_type))
    known = (x is None or (x.dtype is not None and is_static(x)) for x in node.inputs)
    if rule is None or not all(known):
        return
    for value, (dtype, shape) in zip(node.outputs, rule(node), strict=False):
        value.type, value.shape = ir.TensorType(dtype), ir.Shape(shape)
