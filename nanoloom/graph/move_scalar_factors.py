"""A number times the larger operand of a product is one times the smaller one.

    MatMul(x, Mul(y, c))  ->  MatMul(Mul(x, c), y)      c one constant number

The body of ONNX's Attention multiplies queries and keys by a root each: all the keys of
a cache, for a few queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.types import is_static, shape_of

FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


def move_factors(graph: ir.Graph) -> None:
    """Rewrite a graph with static shapes in place."""
    rewriting = Factors(graph)
    for node in graph:
        if is_tensor_op(node, {"MatMul"}):
            rewriting.visit(node)


@dataclass
class Factors(GraphEditor):
    """The graph being rewritten."""

    def visit(self, node: ir.Node) -> None:
        """Multiply a product's left operand, if its right one is larger."""
        left, right = node.inputs
        assert left is not None and right is not None
        if left.dtype not in FLOATS or not is_static(left) or not is_static(right):
            return
        found = scaled(right)
        if found is None or size(left) >= size(right):
            return
        source, factor = found
        name = f"{node.name}/factor"
        made = self.add(node, "Mul", [left, factor], [], shape_of(left), left, name)
        node.replace_input_with(0, made)
        node.replace_input_with(1, source)


def scaled(value: ir.Value) -> tuple[ir.Value, ir.Value] | None:
    """What a value is the product of: something computed, and one constant number."""
    node = value.producer()
    if node is None or not is_tensor_op(node, {"Mul"}) or len(list(value.uses())) != 1:
        return None
    if value.is_graph_output():
        return None
    one, other = node.inputs
    for source, factor in ((one, other), (other, one)):
        if source is None or factor is None or factor.const_value is None:
            continue
        computed = source.const_value is None and is_static(source)
        single = size(factor) == 1 and len(shape_of(factor)) <= 1
        if computed and single and shape_of(source) == shape_of(value):
            return source, factor
    return None


def size(value: ir.Value) -> int:
    return prod(shape_of(value))
