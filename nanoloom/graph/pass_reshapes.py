"""Reshapes pass operations that go over the axes which they regroup.

    Reshape(f(x, y))     ->  f(Reshape(x), Reshape(y))    it meets another, or a product
    f(Reshape(x), y)     ->  Reshape(f(x, Reshape(y)))

f: elementwise operations on all axes; MatMul, Softmax and GatherElements on those in
front of the ones that they mix; Transpose where what is regrouped stays side by side
(axis_groups.py).  A Reshape back is none, that of a constant is done now, and what was
repeated for each element of an axis (Expand, Tile) is one element of it.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.graph.axis_groups import Regrouping, Shape, regroup_axes
from nanoloom.graph.editor import GraphEditor, transpose_order
from nanoloom.graph.layout_effects import ONE_TO_ONE, is_tensor_op
from nanoloom.graph.lookup_tables import maps_bytes
from nanoloom.graph.quantization import known_array, only_user, quantizes_alike
from nanoloom.graph.types import is_static, shape_of

LAST = frozenset({"GatherElements", "Softmax"})  # along the last axis


def mixed_axes(node: ir.Node) -> int | None:
    """How many axes, the last ones, an operation does not go over; None: no such."""
    if is_tensor_op(node, ONE_TO_ONE) or quantizes_alike(node) or maps_bytes(node):
        return 0
    if is_tensor_op(node, {"MatMul"}):
        return 2
    axis = node.attributes.get("axis")  # what it is else depends on the opset
    if axis is None or not is_tensor_op(node, LAST):
        return None
    return 1 if axis.as_int() in (-1, len(shape_of(node.outputs[0])) - 1) else None


def operand_shapes(node: ir.Node, wanted: Shape) -> list[Shape] | None:
    """The shapes of which an operation makes `wanted`; None where none do."""
    values = [x for x in node.inputs if x is not None]
    if len(node.outputs) != 1 or not all(map(is_static, (*values, *node.outputs))):
        return None
    mixed, out = mixed_axes(node), shape_of(node.outputs[0])
    if mixed is None or out[len(out) - mixed :] != wanted[len(wanted) - mixed :]:
        return None
    change = Regrouping(front(out, mixed), front(wanted, mixed))
    found: list[Shape] = []
    for shape in map(shape_of, values):
        made = change.of(front(shape, mixed)) if len(shape) >= mixed else None
        alike = front(shape, mixed) == change.before
        if made is None or (is_tensor_op(node, {"GatherElements"}) and not alike):
            return None
        found.append((*made, *shape[len(shape) - mixed :]))
    return found


def covers(inputs: Sequence[ir.Value | None], shape: Shape, mixed: int) -> bool:
    """Whether operands have all elements of a result's axes in front."""
    fronts = [front(shape_of(x), mixed) for x in inputs if x is not None]
    return np.broadcast_shapes(*fronts) == front(shape, mixed)


def front(shape: Shape, mixed: int) -> Shape:
    return shape[: len(shape) - mixed]


@dataclass
class PassReshapes(GraphEditor):
    """The graph being rewritten."""

    def hoist(
        self, value: ir.Value, shape: Shape, before: ir.Node, *, once: bool = False
    ) -> ir.Value:
        """A value in another shape, made of operands in other shapes if it can be.

        once: one element will do of an axis along which all are alike.
        """
        node = value.producer()
        if once and (part := self.part(value, shape, before)) is not None:
            return part
        if (order := transpose_order(value)) is not None:
            assert node is not None and node.inputs[0] is not None
            found = regroup_axes(shape_of(node.inputs[0]), order, shape)
            if found is not None:
                made = self.hoist(node.inputs[0], found.shape, before, once=once)
                return self.transpose(made, found.order, before)
        alone = node is not None and only_user(value) is not None
        shapes = operand_shapes(node, shape) if node is not None and alone else None
        if node is not None and shapes is not None:
            return self.rebuilt(node, shapes, shape, before, range(len(node.inputs)))
        made = self.reshape(value, shape, before)
        wide = made.producer() if once else None
        few = wide.inputs[0] if wide and is_tensor_op(wide, {"Expand"}) else None
        broadcasts = few is not None and len(shape_of(few)) == len(shape)
        return few if few is not None and broadcasts else made

    def part(self, value: ir.Value, shape: Shape, before: ir.Node) -> ir.Value | None:
        """One element of a new first axis along which a value repeats the others."""
        node, array = value.producer(), known_array(value)
        if len(shape) <= len(shape_of(value)) or shape[0] <= 1:
            return None
        if node is None and array is not None:
            parts = array.reshape(shape)
            if all(np.array_equal(parts[0], part) for part in parts[1:]):
                return self.constant(parts[:1], f"{value.name}_once_{shape[0]}")
        repeats = node is not None and is_tensor_op(node, {"Tile"})
        source = node.inputs[0] if node is not None and repeats else None
        if source is None or not is_static(source) or shape_of(source) != shape[1:]:
            return None
        return self.reshape(source, (1, *shape[1:]), before)

    def rebuilt(
        self,
        node: ir.Node,
        shapes: Sequence[Shape],
        shape: Shape,
        before: ir.Node,
        hoisted: Container[int],
    ) -> ir.Value:
        """An operation on operands of other shapes; hoisted: whose Reshapes go on."""
        last, inputs = is_tensor_op(node, LAST), list[ir.Value | None]()
        for once in (not last, False):
            left = iter(shapes)
            inputs = [
                None
                if x is None
                else self.hoist(x, next(left), before, once=once)
                if place in hoisted
                else self.reshape(x, next(left), before)
                for place, x in enumerate(node.inputs)
            ]
            if covers(inputs, shape, mixed_axes(node) or 0):
                break
        kept = [a for a in node.attributes.values() if not last or a.name != "axis"]
        kept += [ir.AttrInt64("axis", -1)] if last else []
        name, out = node.name or node.op_type, node.outputs[0]
        op, domain = node.op_type, node.domain
        return self.add(before, op, inputs, kept, shape, out, name, domain)

    def sink(
        self, node: ir.Node, shape: Shape, hoisted: Container[int] = ()
    ) -> ir.Value | None:
        """A Reshape in a node's place, of its result in this shape; gives the former.

        None where operands have no such shapes.
        """
        shapes = operand_shapes(node, shape)
        if shapes is None:
            return None
        made = self.rebuilt(node, shapes, shape, node, hoisted)
        back, read = self.back(made, node), list(node.inputs)
        self.replace(node, back)
        for value in read:  # a Reshape that is none would be another reader
            if value is None or value.uses() or value.is_graph_output():
                continue
            maker = value.producer()
            if maker is not None and is_tensor_op(maker, {"Reshape"}):
                self.graph.remove(maker, safe=True)
        return back

    def back(self, made: ir.Value, node: ir.Node) -> ir.Value:
        """What a node makes in the shape that it had, by an operand's Reshape again.

        Its target may say -1, and be the same for all sizes.
        """
        out = node.outputs[0]
        for value in node.inputs:
            maker = None if value is None else value.producer()
            if value is None or maker is None or not is_tensor_op(maker, {"Reshape"}):
                continue
            source = maker.inputs[0]
            alike = source is not None and shape_of(source) == shape_of(made)
            if alike and shape_of(value) == shape_of(out):
                inputs, kept = [made, *maker.inputs[1:]], maker.attributes.values()
                name, shape = maker.name or "Reshape", shape_of(out)
                return self.add(node, "Reshape", inputs, list(kept), shape, out, name)
        return self.reshape(made, shape_of(out), node)
