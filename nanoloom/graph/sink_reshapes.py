"""Reshapes sink behind elementwise operations, which then follow a product at once.

    f(Reshape(x), number)  ->  Reshape(f(x, number))

A product takes the elementwise operations behind it into its kernel, but none behind a
Reshape: they would have other loops.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.layout_effects import ONE_TO_ONE, is_tensor_op
from nanoloom.graph.lookup_tables import is_table
from nanoloom.graph.quantization import only_user, quantizes_alike
from nanoloom.graph.types import is_computed, is_static, shape_of

PRODUCTS = {"Conv", "ConvTranspose", "Gemm", "MatMul"}


def sink_reshapes(graph: ir.Graph) -> None:
    """Rewrite a graph with static shapes in place."""
    rewriting = Reshapes(graph)
    for node in graph:
        if is_elementwise(node) and is_static(node.outputs[0]):
            rewriting.visit(node)


def is_elementwise(node: ir.Node) -> bool:
    return is_tensor_op(node, ONE_TO_ONE) or quantizes_alike(node) or is_table(node)


@dataclass
class Reshapes(GraphEditor):
    """The graph being rewritten."""

    def visit(self, node: ir.Node) -> None:
        """Swap an operation of one tensor and the Reshape in front of it."""
        out = node.outputs[0]
        computed = [v for v in node.inputs if is_computed(v)]
        reshape = computed[0].producer() if len(computed) == 1 else None  # type: ignore[union-attr]
        if reshape is None or not is_tensor_op(reshape, {"Reshape"}):
            return
        x, others = reshape.inputs[0], [v for v in node.inputs if v is not computed[0]]
        if x is None or only_user(reshape.outputs[0]) is not node or not behind(x):
            return
        if not all(v is None or is_number(v, len(shape_of(x))) for v in others):
            return
        alike = shape_of(out) == shape_of(reshape.outputs[0])
        if not alike or len([v for v in node.outputs if v.name]) != 1:
            return
        inputs = [x if v is computed[0] else v for v in node.inputs]
        name, kept = node.name or node.op_type, list(node.attributes.values())
        made = self.add(node, node.op_type, inputs, kept, shape_of(x), out, name)
        again = self.add(
            node,
            "Reshape",
            [made, *reshape.inputs[1:]],
            list(reshape.attributes.values()),
            shape_of(out),
            out,
            reshape.name or "Reshape",
        )
        self.replace(node, again)
        self.graph.remove(reshape, safe=True)


def is_number(value: ir.Value, rank: int) -> bool:
    """Whether a value has one element, also beside a tensor of this rank."""
    shape = shape_of(value)
    return len(shape) <= rank and all(size == 1 for size in shape)


def behind(value: ir.Value) -> bool:
    """Whether a product makes a value, or an elementwise operation behind one."""
    node = value.producer()
    while node is not None and only_user(node.outputs[0]) is not None:
        if node.op_type in PRODUCTS:
            return True
        computed = [v for v in node.inputs if is_computed(v)]
        if not is_elementwise(node) or len(computed) != 1 or computed[0] is None:
            return False
        node = computed[0].producer()
    return False
