"""Building blocks of the layout pass: nodes, transposes and turned constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.graph.derived_constants import DerivedTensor, derived, weight_of
from nanoloom.graph.types import shape_of
from nanoloom.graph.unique_names import name_for_now
from nanoloom.weights.derivations import Reshaped, Transposed


def transpose_order(value: ir.Value | None) -> list[int] | None:
    """The permutation of the Transpose that makes a value, None if none does."""
    node = None if value is None else value.producer()
    if (
        node is None
        or node.op_type != "Transpose"
        or node.domain not in ("", "ai.onnx")
    ):
        return None
    assert value is not None
    order = node.attributes.get("perm")
    if order is not None:
        return list(order.as_ints())
    return list(reversed(range(len(shape_of(value)))))


def inverse(order: Sequence[int]) -> list[int]:
    return [list(order).index(d) for d in range(len(order))]


@dataclass
class GraphEditor:
    """A graph that gets new nodes in front of old ones."""

    graph: ir.Graph

    def add(
        self,
        before: ir.Node,
        op: str,
        inputs: Sequence[ir.Value | None],
        attributes: Sequence[ir.Attr],
        shape: Sequence[int],
        like: ir.Value,
        name: str,
        domain: str = "",
        version: int | None = None,
    ) -> ir.Value:
        """The output of a new node.

        version: of the operator set that its inputs are of; without it `before`'s.
        """
        node = ir.Node(
            domain,
            op,
            list(inputs),
            list(attributes),
            num_outputs=1,
            version=before.version if version is None else version,
            name=name,
        )
        return self.added(node, before, [(shape, like)])[0]

    def added(
        self,
        node: ir.Node,
        before: ir.Node,
        outputs: Sequence[tuple[Sequence[int], ir.Value]],
    ) -> Sequence[ir.Value]:
        """A new node's outputs; outputs: the shape of each, and one of its type."""
        for number, (shape, like) in enumerate(outputs):
            value = node.outputs[number]
            name_for_now(self.graph, node, value)
            value.shape, value.type = ir.Shape(shape), like.type
        self.graph.insert_before(before, node)
        return node.outputs

    def transpose(
        self, value: ir.Value, order: Sequence[int], before: ir.Node
    ) -> ir.Value:
        """The value with its dimensions in another order, without a useless node."""
        if list(order) == list(range(len(order))):
            return value
        known = transpose_order(value)
        if known is not None:
            source = value.producer().inputs[0]  # type: ignore[union-attr]
            assert source is not None
            return self.transpose(source, [known[d] for d in order], before)
        shape = [shape_of(value)[d] for d in order]
        if value.const_value is not None:
            return self.turned_constant(value, order, shape)
        perm = ir.AttrInt64s("perm", list(order))
        name = f"{before.name}/layout"
        return self.add(before, "Transpose", [value], [perm], shape, value, name)

    def reshape(
        self, value: ir.Value, shape: Sequence[int], before: ir.Node
    ) -> ir.Value:
        """The value in another shape, without a useless node."""
        node = value.producer()
        if shape_of(value) == tuple(shape):
            return value
        if node is not None and node.op_type == "Reshape" and node.domain == "":
            source = node.inputs[0]
            if source is not None and shape_of(source) == tuple(shape):
                return source
        if value.const_value is not None:
            return self.reshaped_constant(value, shape)
        sizes, name = self.vector(list(shape), before), f"{before.name}/shape"
        return self.add(before, "Reshape", [value, sizes], [], shape, value, name)

    def turned_constant(
        self, value: ir.Value, order: Sequence[int], shape: Sequence[int]
    ) -> ir.Value:
        made = ir.Value(
            name=f"{value.name}_{'_'.join(map(str, order))}",
            shape=ir.Shape(shape),
            type=value.type,
            const_value=derived(value, Transposed(tuple(order))),
        )
        return self.registered(made)

    def constant(self, array: np.ndarray, name: str) -> ir.Value:
        """An array as an initializer."""
        made = ir.Value(
            name=name,
            shape=ir.Shape(array.shape),
            type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
            const_value=ir.Tensor(array),
        )
        return self.registered(made)

    def registered(self, made: ir.Value) -> ir.Value:
        """`made` as an initializer, or an equal one from earlier.

        The model may have another one of its name; then it gets a number behind it.
        """
        wish, count, held = made.name or "", 0, self.graph.initializers
        name = wish
        while name in held and not is_same(held[name], made):
            count += 1
            name = f"{wish}.{count}"
        if name in held:
            return held[name]
        made.name = name
        self.graph.register_initializer(made)
        return made

    def replace(self, node: ir.Node, *values: ir.Value) -> None:
        """Other values for all outputs of a node, which goes."""
        for old, value in zip(node.outputs, values, strict=True):
            ir.convenience.replace_all_uses_with(old, value, replace_graph_outputs=True)
            value.name, old.name = old.name, None
        self.graph.remove(node, safe=True)

    def raised(self, value: ir.Value, rank: int) -> ir.Value | None:
        """A constant of lower rank with leading dimensions of 1; None otherwise."""
        if value.const_value is None:
            return None
        shape = [1] * (rank - len(shape_of(value))) + list(shape_of(value))
        return self.reshaped_constant(value, shape)

    def reshaped_constant(self, value: ir.Value, shape: Sequence[int]) -> ir.Value:
        made = ir.Value(
            name=f"{value.name}_{'_'.join(map(str, shape))}",
            shape=ir.Shape(shape),
            type=value.type,
            const_value=derived(value, Reshaped(tuple(shape))),
        )
        return self.registered(made)

    def vector(
        self, numbers: Sequence[float], node: ir.Node, like: str = "int64"
    ) -> ir.Value:
        array = np.array(numbers, dtype=like)
        made = ir.Value(
            name=f"{node.name}/layout_{len(self.graph.initializers)}",
            shape=ir.Shape(array.shape),
            type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
            const_value=ir.Tensor(array),
        )
        return self.registered(made)


def is_same(one: ir.Value, other: ir.Value) -> bool:
    """Whether two constants are the same array: of one weight, or bit by bit."""
    held, made = one.const_value, other.const_value
    if held is None or made is None or one.type != other.type:
        return False
    if shape_of(one) != shape_of(other):
        return False
    if weight_of(held) == weight_of(made):
        return True
    if isinstance(held, DerivedTensor) or isinstance(made, DerivedTensor):
        return False  # a large one is not read to find out
    return held.numpy().tobytes() == made.numpy().tobytes()
