"""Shapes of outputs that ONNX defines but its inference leaves open."""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.graph import classical


def complete(node: ir.Node) -> None:
    """Give outputs the shapes that their operator says, as far as it is known."""
    if node.domain == classical.DOMAIN:
        classical.complete(node)
    elif node.op_type == "MaxUnpool":
        unpooled(node)


def unpooled(node: ir.Node) -> None:
    """MaxUnpool: what its third input says."""
    given = node.inputs[2] if len(node.inputs) > 2 else None
    if given is not None and given.const_value is not None:
        sizes = tuple(int(size) for size in given.const_value.numpy())
        node.outputs[0].shape = ir.Shape(sizes)
