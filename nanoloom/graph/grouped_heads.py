"""Heads that share keys and values read them as they are: nothing is repeated.

    MatMul(q, Reshape(Expand(k)))  ->  Reshape(MatMul(Reshape(q), k))

    k: [b, g, 1, t, d], of g groups.  Expand: to [b, g, r, t, d].  Reshape: to
    [b, g r, t, d], a head each.  q: [b, g r, m, t], in groups [b, g, r, m, t].

So too where the last two axes are turned behind it.  What follows a product element by
element, and Softmax along the last axis, stays in groups: the two products of an
attention are neighbours still.

For one row m, the next token of a text, to which what is repeated would be most of the
work.  Many rows share it, and their two products are one kernel for heads only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from nanoloom.graph.editor import transpose_order
from nanoloom.graph.head_axes import HeadAxes
from nanoloom.graph.layout_effects import ONE_TO_ONE, is_tensor_op
from nanoloom.graph.types import is_static, shape_of

TURNED = [0, 1, 3, 2]
HEADS, ROWS = 1, 2  # axes


def share_repeated_heads(graph: ir.Graph) -> None:
    """Rewrite a graph with static shapes in place."""
    rewriting = Grouped(graph)
    for node in graph:
        if is_tensor_op(node, {"MatMul"}):
            rewriting.visit(node)


@dataclass
class Grouped(HeadAxes):
    """The graph being rewritten."""

    def visit(self, node: ir.Node) -> None:
        """Multiply by what heads share, if a product's right operand repeats it."""
        left, right = node.inputs
        assert left is not None and right is not None
        turned = transpose_order(right) == TURNED
        source = right.producer().inputs[0] if turned else right  # type: ignore[union-attr]
        shared = None if source is None else repeated(source)
        if shared is None or not is_static(left) or len(shape_of(left)) != 4:
            return
        if shape_of(left)[ROWS] != 1:
            return
        groups, heads = shape_of(shared)[HEADS], shape_of(left)[HEADS]
        if shape_of(left)[:2] != (shape_of(shared)[0], shape_of(right)[HEADS]):
            return
        if turned:
            shared = self.transpose(shared, [0, 1, 2, 4, 3], node)
        out, split = node.outputs[0], (groups, heads // groups)
        inputs = [self.grouped(left, split, node), shared]
        shape = in_groups(shape_of(out), split)
        name = node.name or "MatMul"
        made = self.add(node, "MatMul", inputs, [], shape, out, name)
        joined = self.reshaped(made, shape_of(out), node)
        self.replace(node, joined)
        self.sink(joined, split)

    def sink(self, joined: ir.Value, split: tuple[int, int]) -> None:
        """Keep what follows in groups, as long as it goes over the same elements."""
        while (node := follower(joined)) is not None:
            out = node.outputs[0]
            others = [x for x in node.inputs if x is not None]
            if not all(is_static(x) and may_split(x, split) for x in others):
                return
            shape = in_groups(shape_of(out), split)
            inputs = [
                None if x is None else self.grouped(x, split, node) for x in node.inputs
            ]
            kept = [a for a in node.attributes.values() if a.name != "axis"]
            if node.op_type == "Softmax":
                kept.append(ir.AttrInt64("axis", -1))
            name = node.name or node.op_type
            made = self.add(node, node.op_type, inputs, kept, shape, out, name)
            again = self.reshaped(made, shape_of(out), node)
            self.replace(node, again)
            joined = again

    def grouped(
        self, value: ir.Value, split: tuple[int, int], before: ir.Node
    ) -> ir.Value:
        """A value with its heads in groups; what needs no such axis stays."""
        shape = shape_of(value)
        if len(shape) < 3 or (len(shape) == 3 and shape[0] == 1):
            return value
        return self.viewed(value, in_groups(shape, split), before)


def repeated(value: ir.Value) -> ir.Value | None:
    """[b, g, 1, t, d] that a value [b, g r, t, d] repeats; None for others."""
    reshape = value.producer()
    if reshape is None or not is_tensor_op(reshape, {"Reshape"}):
        return None
    wide = reshape.inputs[0]
    expand = None if wide is None else wide.producer()
    if wide is None or expand is None or not is_tensor_op(expand, {"Expand"}):
        return None
    shared = expand.inputs[0]
    if shared is None or not is_static(shared) or not is_static(wide):
        return None
    few, many, heads = shape_of(shared), shape_of(wide), shape_of(value)
    if len(few) != 5 or len(many) != 5 or len(heads) != 4:
        return None
    joined = (many[0], many[1] * many[2], *many[3:])
    alike = few == (many[0], many[1], 1, *many[3:])
    return shared if alike and heads == joined else None


def follower(value: ir.Value) -> ir.Node | None:
    """What goes over the elements of a value of four axes, if nothing else reads it."""
    uses = list(value.uses())
    if len(uses) != 1 or value.is_graph_output():
        return None
    node = uses[0].node
    if len(node.outputs) != 1 or not is_static(node.outputs[0]):
        return None
    if shape_of(node.outputs[0]) != shape_of(value):
        return None
    if is_tensor_op(node, {"Softmax"}):
        axis = node.attributes.get("axis")  # what it is else depends on the opset
        return node if axis is not None and axis.as_int() in (-1, 3) else None
    return node if is_tensor_op(node, ONE_TO_ONE) else None


def in_groups(shape: Sequence[int], split: tuple[int, int]) -> list[int]:
    """A shape [..., h, m, n] with its heads, or 1 for all of them, in groups."""
    *front, heads, rows, columns = shape
    return [*front, *((1, 1) if heads == 1 else split), rows, columns]


def may_split(value: ir.Value, split: tuple[int, int]) -> bool:
    """Whether an operand has all heads, or one for all."""
    shape = shape_of(value)
    return len(shape) < 3 or shape[-3] in (1, split[0] * split[1])
