"""A batch and its heads that a Reshape made one axis are two axes again.

    Reshape<[b, h, m, n]>(f(x, y))      ->  f(Reshape(x), Reshape(y))
    MatMul(Reshape<[b h, m, n]>(p), v)  ->  Reshape(MatMul(p, Reshape(v)))

f: products of [b h, m, n], and what stands behind them element by element.  DeBERTa
multiplies so, and masks by [b, h, m, n]: the two products of its attention are
neighbours then, and what it repeats for each text of a batch (Tile) is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.graph.editor import transpose_order
from nanoloom.graph.head_axes import HeadAxes
from nanoloom.graph.layout_effects import ONE_TO_ONE, is_tensor_op
from nanoloom.graph.quantization import known_array, only_user
from nanoloom.graph.types import is_static, shape_of

Split = tuple[int, int]  # batch, heads


def split_batch_and_heads(graph: ir.Graph) -> None:
    """Rewrite a graph with static shapes in place."""
    rewriting = SplitHeads(graph)
    for node in graph:
        if is_tensor_op(node, {"Reshape"}):
            rewriting.split(node)
        elif is_tensor_op(node, {"MatMul"}):
            rewriting.multiply(node)


@dataclass
class SplitHeads(HeadAxes):
    """The graph being rewritten."""

    def split(self, node: ir.Node) -> None:
        """Give a product the two axes that it is read with."""
        (out,), value = node.outputs, node.inputs[0]
        if value is None or not is_static(value) or not is_static(out):
            return
        split = split_of(shape_of(value), shape_of(out))
        if split is not None and follows_product(value, split):
            self.replace(node, self.apart(value, split, node))

    def multiply(self, node: ir.Node) -> None:
        """Multiply by what was [b, h, m, n] as it was."""
        left, right = node.inputs
        merge = None if left is None else left.producer()
        if left is None or merge is None or not is_tensor_op(merge, {"Reshape"}):
            return
        source = merge.inputs[0]
        if source is None or right is None:
            return
        if not all(is_static(x) for x in (source, left, right)):
            return
        split = split_of(shape_of(left), shape_of(source))
        if split is None or not is_joined(right, split):
            return
        out = node.outputs[0]
        shape = (*split, *shape_of(out)[1:])
        inputs = [source, self.shared(right, split, node)]
        made = self.add(node, "MatMul", inputs, [], shape, out, node.name or "MatMul")
        self.replace(node, self.reshaped(made, shape_of(out), node))

    def apart(self, value: ir.Value, split: Split, before: ir.Node) -> ir.Value:
        """A value [b h, m, n] as [b, h, m, n]."""
        node, shape = value.producer(), (*split, *shape_of(value)[1:])
        if node is None or not has_heads(node, split):
            return self.viewed(value, shape, before)
        attributes = list(node.attributes.values())
        whole = node.op_type == "GatherElements"
        inputs = [
            x
            if x is None or not is_joined(x, split)
            else (self.apart if whole else self.shared)(x, split, before)
            for x in node.inputs
        ]
        if whole:
            attributes = [ir.AttrInt64("axis", 3)]
        elif node.op_type == "Transpose":
            attributes = [ir.AttrInt64s("perm", [0, 1, 3, 2])]
        name = node.name or node.op_type
        return self.add(before, node.op_type, inputs, attributes, shape, value, name)

    def shared(self, value: ir.Value, split: Split, before: ir.Node) -> ir.Value:
        """The same, or [1, h, m, n] where that is repeated for all of a batch."""
        node, (batch, heads) = value.producer(), split
        rows = shape_of(value)[1:]
        if transpose_order(value) == [0, 2, 1]:
            assert node is not None and node.inputs[0] is not None
            turned = self.shared(node.inputs[0], split, before)
            return self.transpose(turned, [0, 1, 3, 2], before)
        source = None if node is None else node.inputs[0] if node.inputs else None
        if node is not None and source is not None and is_static(source):
            repeats = is_tensor_op(node, {"Tile"})
            if repeats and shape_of(source) == (heads, *rows):
                return self.viewed(source, (1, heads, *rows), before)
        array = known_array(value)
        if array is not None and batch > 1 and value.producer() is None:
            parts = array.reshape(batch, heads, *rows)
            if all(np.array_equal(parts[0], part) for part in parts[1:]):
                return self.constant(parts[:1], f"{value.name}_once_{batch}")
        return self.apart(value, split, before)


def split_of(joined: Sequence[int], wanted: Sequence[int]) -> Split | None:
    """Batch and heads, if [b h, m, n] and [b, h, m, n] are the shapes."""
    if len(joined) != 3 or len(wanted) != 4 or tuple(joined[1:]) != tuple(wanted[2:]):
        return None
    return (wanted[0], wanted[1]) if joined[0] == wanted[0] * wanted[1] else None


def is_joined(value: ir.Value, split: Split) -> bool:
    """Whether a value is [b h, m, n]."""
    return len(shape_of(value)) == 3 and shape_of(value)[0] == split[0] * split[1]


def has_heads(node: ir.Node, split: Split) -> bool:
    """Whether a node works on each matrix of [b h, m, n] by itself, for one reader."""
    out, inputs = node.outputs[0], [x for x in node.inputs if x is not None]
    if only_user(out) is None or not all(is_static(x) for x in (*inputs, out)):
        return False
    if not is_joined(out, split):
        return False
    if is_tensor_op(node, ONE_TO_ONE):
        return all(is_joined(x, split) or is_alike(x) for x in inputs)
    if is_tensor_op(node, {"Transpose"}):
        return transpose_order(out) == [0, 2, 1]
    axis = node.attributes.get("axis")
    if is_tensor_op(node, {"GatherElements"}):
        if axis is None or axis.as_int() not in (-1, 2):
            return False
    elif not is_tensor_op(node, {"MatMul"}):
        return False
    return all(is_joined(x, split) for x in inputs)


def is_alike(value: ir.Value) -> bool:
    """Whether an operand is the same for all matrices."""
    shape = shape_of(value)
    return len(shape) < 3 or shape[0] == 1


def follows_product(value: ir.Value, split: Split) -> bool:
    """Whether a product makes a value, or what stands behind one."""
    node = value.producer()
    if node is None or not has_heads(node, split):
        return False
    if node.op_type == "MatMul":
        return True
    read = [x for x in node.inputs if x is not None and is_joined(x, split)]
    return any(follows_product(x, split) for x in read)
