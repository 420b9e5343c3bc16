"""Where numbers of 8 bits stand in a model: behind which values, and who reads them.

A value is in 8 bits where a product or an average in integers reads it, or where one
gives it and such a reader is what follows.  Nothing else is rounded: what goes to a
softmax, a normalization or out of the model stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import onnx_ir as ir

from nanoloom.graph.integer_movement import MOVES, ORDERED
from nanoloom.graph.integer_products import AVERAGES
from nanoloom.graph.layout_effects import ONE_TO_ONE, is_tensor_op
from nanoloom.graph.quantization import only_user
from nanoloom.quantization.candidates import (
    PRODUCTS,
    constant,
    vector_added,
)

JOINS = {"Add", "Concat"}
OTHERS = {"BatchNormalization", "Pad", "Split"}
THROUGH = ONE_TO_ONE | MOVES | ORDERED | AVERAGES | JOINS | OTHERS
SAME_NUMBERS = MOVES | ORDERED  # of results as of the first input
LIMITS = {"Relu", "Clip"}


@dataclass
class Placement:
    """pairs: values that are in 8 bits.  readers: of each, who reads it so.

    computed: nodes that read and give 8 bits, by name, each with its last value: behind
    a bias and a Relu.
    """

    pairs: dict[ir.Value, list[tuple[ir.Node, int]]] = field(
        default_factory=dict[ir.Value, list[tuple[ir.Node, int]]]
    )
    computed: dict[str, ir.Value] = field(default_factory=dict[str, ir.Value])

    def source(self, value: ir.Value) -> ir.Value:
        """The value whose range one has: of what it was moved from."""
        while (node := value.producer()) is not None:
            first = node.inputs[0] if node.inputs else None
            if not is_tensor_op(node, SAME_NUMBERS) or first not in self.pairs:
                break
            assert first is not None
            value = first
        return value


def placement(graph: ir.Graph, chosen: Collection[str]) -> Placement:
    """For the products with these names.  The graph stays as it is."""
    wanted = wanted_values(graph, chosen)
    found = Placement()
    for node in graph:
        if not in_integers(node, chosen, wanted):
            continue
        last = tail(node)
        found.computed[node.name or ""] = last
        is_join = is_tensor_op(node, JOINS)
        if not is_join and node.inputs[0] is not None:
            found.pairs.setdefault(node.inputs[0], [])
        if last in wanted:
            found.pairs.setdefault(last, [])
    for value, readers in found.pairs.items():
        readers.extend(
            (use.node, use.idx)
            for use in value.uses()
            if reads_bytes(use.node, use.idx, chosen, wanted)
        )
    return found


def wanted_values(graph: ir.Graph, chosen: Collection[str]) -> set[ir.Value]:
    """What products in integers read, at once or behind elementwise operations."""
    wanted: set[ir.Value] = set()
    for node in reversed(list(graph)):
        for place, value in enumerate(node.inputs):
            if value is not None and reads_bytes(node, place, chosen, wanted):
                wanted.add(value)
    return wanted


def reads_bytes(
    node: ir.Node, place: int, chosen: Collection[str], wanted: Collection[ir.Value]
) -> bool:
    """Whether a node reads an input in 8 bits, or what it makes of it is read so."""
    value = node.inputs[place]
    if value is None or value.dtype != ir.DataType.FLOAT or constant(value) is not None:
        return False
    if is_tensor_op(node, PRODUCTS):
        return node.name in chosen and place == 0
    return is_tensor_op(node, THROUGH) and any(x in wanted for x in node.outputs)


def in_integers(
    node: ir.Node, chosen: Collection[str], wanted: Collection[ir.Value]
) -> bool:
    """Products that are chosen; averages, sums and joins between such."""
    if is_tensor_op(node, PRODUCTS):
        return node.name in chosen
    if not is_tensor_op(node, AVERAGES | JOINS) or tail(node) not in wanted:
        return False
    joined = node.inputs if is_tensor_op(node, JOINS) else ()
    return all(constant(value) is None for value in joined)


def tail(node: ir.Node) -> ir.Value:
    """The value behind a node's bias and Relu: where its result is rounded."""
    out = node.outputs[0]
    after = only_user(out)
    if (
        after is not None
        and is_tensor_op(node, {"MatMul"})
        and vector_added(after, out)
    ):
        out = after.outputs[0]
        after = only_user(out)
    limits = not is_tensor_op(node, AVERAGES | {"Concat"})
    if after is not None and limits and is_tensor_op(after, LIMITS):
        out = after.outputs[0]
    return out


def behind(node: ir.Node, last: ir.Value) -> Iterator[ir.Node]:
    """The nodes of a tail: a node, its bias, its Relu."""
    yield node
    out = node.outputs[0]
    while out is not last:
        after = only_user(out)
        assert after is not None
        yield after
        out = after.outputs[0]
