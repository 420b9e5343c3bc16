"""Shapes of outputs that ONNX defines, where its inference has none, or others."""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.graph import classical
from nanoloom.graph.einsum_equation import result_shape
from nanoloom.graph.types import is_static, shape_of


def complete(node: ir.Node) -> None:
    """Give outputs the shapes that their operator says, as far as it is known."""
    if node.domain == classical.DOMAIN:
        classical.complete(node)
    elif node.op_type == "MaxUnpool":
        unpooled(node)
    elif node.op_type == "Einsum":
        repeated(node)


def unpooled(node: ir.Node) -> None:
    """MaxUnpool: what its third input says."""
    given = node.inputs[2] if len(node.inputs) > 2 else None
    if given is not None and given.const_value is not None:
        sizes = tuple(int(size) for size in given.const_value.numpy())
        node.outputs[0].shape = ir.Shape(sizes)


def repeated(node: ir.Node) -> None:
    """Einsum: ONNX takes a letter's first size, even 1 where others are more."""
    operands = [x for x in node.inputs if x is not None]
    equation = node.attributes.get("equation")
    if equation is not None and all(is_static(x) for x in operands):
        shape = result_shape(equation.as_string(), [shape_of(x) for x in operands])
        node.outputs[0].shape = ir.Shape(shape)
