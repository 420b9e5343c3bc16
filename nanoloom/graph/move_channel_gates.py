"""A factor of each channel of an image is one of the filters that read it.

    Conv(Mul(x, g), w)  ->  Conv(x, Mul(w, g))      g [1, C, 1, 1], w constant, 1x1

The gates of squeeze-and-excite multiply an image that only the next layer reads: as
factors of its filters they take no pass of their own, and no memory.  Where the filters
are more than the image's numbers, as behind the last layers of a network, the image is
multiplied as before.  The products are rounded in another order, each of them twice in
both forms.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.move_scalar_factors import size
from nanoloom.graph.types import is_static, shape_of
from nanoloom.graph.value_origin import Origin

MOVED = 3  # times that filters are written and read, and turned: the image's once


def move_gates(graph: ir.Graph) -> None:
    """Rewrite a graph with static shapes in place."""
    rewriting = Gates(graph)
    for node in graph:
        if is_tensor_op(node, {"Conv"}):
            rewriting.visit(node)


@dataclass
class Gates(GraphEditor):
    """The graph being rewritten."""

    def visit(self, node: ir.Node) -> None:
        """Multiply a convolution's filters, if its image has more numbers."""
        image, filters = node.inputs[:2]
        if image is None or filters is None or not is_pointwise(node, filters):
            return
        found = gated(image)
        if found is None or MOVED * size(filters) >= size(image):
            return
        source, gate = found
        name = f"{node.name}/gate"
        shape = shape_of(filters)
        made = self.add(node, "Mul", [filters, gate], [], shape, filters, name)
        node.replace_input_with(0, source)
        node.replace_input_with(1, made)


def is_pointwise(node: ir.Node, filters: ir.Value) -> bool:
    """Whether a convolution has constant filters of one tap, in f32 and in one group.

    Others are laid out, or transformed, while compiling.
    """
    if filters.const_value is None or filters.dtype != ir.DataType.FLOAT:
        return False
    single = set(shape_of(filters)[2:]) == {1}
    return single and Origin.of(node).int("group", 1) == 1


def gated(image: ir.Value) -> tuple[ir.Value, ir.Value] | None:
    """What an image is the product of: one of its shape, and one number a channel."""
    node = image.producer()
    if node is None or not is_tensor_op(node, {"Mul"}) or image.is_graph_output():
        return None
    if len(list(image.uses())) != 1 or not is_static(image):
        return None
    one, other = node.inputs
    for source, gate in ((one, other), (other, one)):
        if source is not None and gate is not None and is_gate(gate, source, image):
            return source, gate
    return None


def is_gate(gate: ir.Value, source: ir.Value, image: ir.Value) -> bool:
    """Whether one of two factors has a number for each channel, the other for all."""
    if not is_static(gate) or not is_static(source) or gate.const_value is not None:
        return False
    images, channels, *pixels = shape_of(image)
    whole = list(shape_of(source)) == [images, channels, *pixels]
    return whole and list(shape_of(gate)) == [1, channels, *(1 for _ in pixels)]
