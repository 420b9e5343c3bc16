"""Sizes that a model computes in floats, as PyTorch's exporters do, in whole numbers.

    Cast(Ceil(Div(Cast(n, float), 32.0)), int64)  ->  (m - m % 32) / 32,  m = n + 31

Floats are equal to the whole numbers they stand for below 2 ** 24, as sizes are; so is
their quotient by a whole number once it is rounded: it lies 1 / number from the next
one at least, and is wrong by less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from nanoloom.graph.evaluate import constant_of
from nanoloom.graph.unique_names import Names, unique_names

INT64, FEW = ir.DataType.INT64, 64  # elements of a constant that is looked at
ARITHMETIC = ("Add", "Max", "Min", "Mul", "Neg", "Sub")
MOVED = (
    "Gather", "Identity", "ReduceMax", "ReduceMin", "Reshape", "Slice", "Squeeze",
    "Unsqueeze",
)  # fmt: skip
SHAPES, ROUNDED = ("Shape", "Size"), ("Ceil", "Floor", "Round")
INTEGRAL = {*ARITHMETIC, *MOVED, "Concat", "Div", "Mod"}  # of integers make integers


LEAST_OPSET = 12  # since which Max and Min take integers


def use_whole_numbers(graph: ir.Graph) -> None:
    """Let integers that are made of sizes by way of floats be made of them directly."""
    if graph.opset_imports.get("", 1) < LEAST_OPSET:
        return
    rewriter = WholeFloats(graph, unique_names(graph))
    for node in list(graph):
        if node.domain in ("", "ai.onnx"):
            rewriter.visit(node)


@dataclass
class WholeFloats:
    """of_sizes: values that shapes and constants alone decide.  integral: those of them
    whose type is an integer's.  whole: floats, and the integers that they are.
    quotients: floats that are one divided by a number."""

    graph: ir.Graph
    names: Names
    of_sizes: set[ir.Value] = field(default_factory=set[ir.Value])
    integral: set[ir.Value] = field(default_factory=set[ir.Value])
    whole: dict[ir.Value, ir.Value] = field(default_factory=dict[ir.Value, ir.Value])
    quotients: dict[ir.Value, tuple[ir.Value, int]] = field(
        default_factory=dict[ir.Value, tuple[ir.Value, int]]
    )

    def visit(self, node: ir.Node) -> None:
        if node.op_type in SHAPES:
            self.of_sizes.update(node.outputs)
            self.integral.update(node.outputs)
        elif len(node.outputs) == 1 and self.is_of_sizes(node):
            self.of_sizes.add(node.outputs[0])
            if node.op_type == "Cast":
                self.cast(node)
            elif node.op_type in INTEGRAL and self.integral & {*node.inputs}:
                self.integral.add(node.outputs[0])
            else:
                self.computed(node)

    def computed(self, node: ir.Node) -> None:
        """A node of floats."""
        first, made = node.inputs[0], node.outputs[0]
        assert first is not None
        if node.op_type == "Div":
            number = whole_number(node.inputs[1])
            if first in self.whole and number is not None and number > 0:
                self.quotients[made] = self.whole[first], number
        elif node.op_type in ROUNDED:
            self.rounded(node, first, made)
        elif node.op_type in (*ARITHMETIC, "Concat"):
            self.again(node, made, len(node.inputs))
        elif node.op_type in MOVED:
            self.again(node, made, 1)

    def is_of_sizes(self, node: ir.Node) -> bool:
        given = [x for x in node.inputs if x is not None]
        if not given or node.inputs[0] is None:
            return False
        sized = [x in self.of_sizes for x in given]
        known = [is_known(x) for x in given]
        return any(sized) and all(map(max, zip(sized, known, strict=True)))

    def cast(self, node: ir.Node) -> None:
        first, made = node.inputs[0], node.outputs[0]
        assert first is not None
        kind = ir.DataType(node.attributes["to"].as_int())
        if kind in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
            if first in self.whole:
                self.whole[made] = self.whole[first]
            elif first in self.integral:
                self.whole[made] = self.one(node, "Cast", [first], to=int(INT64))
        elif kind.is_integer():
            self.integral.add(made)
            if first not in self.whole or made.is_graph_output():
                return
            twin = self.one(node, "Cast", [self.whole[first]], to=int(kind))
            ir.convenience.replace_all_uses_with(made, twin)
            self.of_sizes.add(twin)
            self.integral.add(twin)

    def rounded(self, node: ir.Node, first: ir.Value, made: ir.Value) -> None:
        if first in self.whole:
            self.whole[made] = self.whole[first]
        elif first in self.quotients and node.op_type != "Round":
            over, number = self.quotients[first]
            if node.op_type == "Ceil":
                over = self.one(node, "Add", [over, self.constant(node, number - 1)])
            by = self.constant(node, number)
            left = self.one(node, "Mod", [over, by])  # Div alone rounds to 0
            self.whole[made] = self.one(
                node, "Div", [self.one(node, "Sub", [over, left]), by]
            )

    def again(self, node: ir.Node, made: ir.Value, data: int) -> None:
        """The same operation on the integers, where all of its data are such.

        Not where two sizes are multiplied, which a float may round.
        """
        sizes = [x for x in node.inputs[:data] if x in self.of_sizes]
        if node.op_type == "Mul" and len(sizes) > 1:
            return
        given: list[ir.Value | None] = []
        for x in node.inputs[:data]:
            twin = None if x is None else self.integers(node, x)
            if twin is None:
                return
            given.append(twin)
        if any(x in self.whole for x in node.inputs[:data]):
            given += node.inputs[data:]
            attributes = list(node.attributes.values())
            self.whole[made] = self.placed(node, node.op_type, given, attributes)

    def integers(self, node: ir.Node, x: ir.Value) -> ir.Value | None:
        """The integers that floats are; None where they are none."""
        if x in self.whole:
            return self.whole[x]
        array = None if x in self.of_sizes else known_array(x)
        if array is None or array.dtype.kind != "f" or not is_whole(array):
            return None
        return self.array(node, array.astype(np.int64))

    # ---- nodes

    def one(
        self, node: ir.Node, op: str, inputs: Sequence[ir.Value | None], **words: int
    ) -> ir.Value:
        given = [ir.AttrInt64(name, n) for name, n in words.items()]
        return self.placed(node, op, inputs, given)

    def placed(
        self,
        node: ir.Node,
        op: str,
        inputs: Sequence[ir.Value | None],
        attributes: Sequence[ir.Attr],
    ) -> ir.Value:
        name = self.names.node(f"{node.name}/{op}")
        made = ir.Node(
            "", op, inputs, attributes, num_outputs=1, version=node.version, name=name
        )
        made.outputs[0].name = self.names.value(name)
        self.graph.insert_before(node, made)
        return made.outputs[0]

    def constant(self, node: ir.Node, number: int) -> ir.Value:
        return self.array(node, np.array(number, np.int64))

    def array(self, node: ir.Node, array: np.ndarray) -> ir.Value:
        name = self.names.value(f"{node.name}/whole")
        made = ir.Value(
            name=name,
            shape=ir.Shape(array.shape),
            type=ir.TensorType(INT64),
            const_value=ir.Tensor(array, name=name),
        )
        self.graph.register_initializer(made)
        return made


def known_array(x: ir.Value | None) -> np.ndarray | None:
    """A small constant; None for others."""
    tensor = None if x is None else constant_of_value(x)
    return None if tensor is None or tensor.size > FEW else tensor.numpy()


def constant_of_value(x: ir.Value) -> ir.TensorProtocol | None:
    node = x.producer()
    if node is not None and node.op_type == "Constant":
        return constant_of(node)
    return x.const_value


def is_known(x: ir.Value) -> bool:
    return constant_of_value(x) is not None


def whole_number(x: ir.Value | None) -> int | None:
    """A constant of one whole number; None for others."""
    array = known_array(x)
    if array is None or array.size != 1 or not is_whole(array):
        return None
    return int(array.reshape(-1)[0])


def is_whole(array: np.ndarray) -> bool:
    return bool(np.isfinite(array).all() and (array == np.rint(array)).all())
