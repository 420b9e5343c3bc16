"""Loops that lengthen a tensor trip by trip: what is added is a scan output.

    s = Loop(trips, goes_on, s0)  with  s' = Concat(s, x)
    -> rows = Loop(trips, goes_on)  with the scan output x;  s = Concat(s0, rows)

Rows that are put in front lie behind one another the other way round.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from nanoloom.graph.carried_to_scan import CARRIED, only_reader, to_scan_outputs
from nanoloom.graph.conditions import never_stops, scalar
from nanoloom.graph.data_dependent.known_trips import FEW
from nanoloom.graph.data_dependent.node_builder import OPSET
from nanoloom.graph.splice import substitute
from nanoloom.graph.types import is_static, shape_of
from nanoloom.graph.unique_names import Names

LAST = np.iinfo(np.int64).min  # behind the first element, from the end


def collect_rows(
    graph: ir.Graph, node: ir.Node, typed: ir.Graph, original: ir.Graph, names: Names
) -> bool:
    """Whether a Loop has become one whose carried values keep their shapes.

    typed: its body; original: the same as the model has it.  Few known trips are
    written out instead.
    """
    trips = scalar(node.inputs[0])
    if trips is not None and trips <= FEW and never_stops(node):
        return False
    found: dict[int, tuple[ir.Node, ir.Value]] = {}
    for i in changing(node, typed):
        if (concat := lengthened(original, i)) is None:
            return False
        first, second = concat.inputs
        row = second if first is original.inputs[CARRIED + i] else first
        assert row is not None
        found[i] = concat, row
    if not found:
        return False
    formals = {i: original.inputs[CARRIED + i] for i in found}
    in_front = {i: c.inputs[1] is formals[i] for i, (c, _) in found.items()}
    axes = {i: c.attributes["axis"].as_int() for i, (c, _) in found.items()}
    node.attributes["body"] = ir.AttrGraph("body", original)
    values, stacked = to_scan_outputs(graph, node, found, names)
    for i, rows in zip(found, stacked, strict=True):
        start = node.inputs[CARRIED + i]
        assert start is not None
        chain = Chain(graph, names, node.name or "Loop")
        axis = axes[i] % len(shape_of(start))
        joined = chain.joined(rows, axis, len(shape_of(start)), turned=in_front[i])
        parts = [joined, start] if in_front[i] else [start, joined]
        values[i] = chain.one("Concat", *parts, axis=axis)
        node.outputs[i].shape = None  # as declared: of another size
        chain.place()
    substitute(graph, node, values)
    return True


def changing(node: ir.Node, body: ir.Graph) -> list[int]:
    """Which carried values change their shapes; none where shapes are not known."""
    count = len(node.inputs) - CARRIED
    before, after = body.inputs[CARRIED:], body.outputs[1 : 1 + count]
    pairs = list(zip(before, after, strict=True))
    if not all(is_static(x) for pair in pairs for x in pair):
        return []
    return [i for i, (x, y) in enumerate(pairs) if shape_of(x) != shape_of(y)]


def lengthened(body: ir.Graph, index: int) -> ir.Node | None:
    """The Concat of two that is all that a trip does with a value; or None."""
    last = only_reader(body, index, "Concat")
    return last if last is not None and len(last.inputs) == 2 else None


class Chain:
    """Nodes that are placed behind a Loop together."""

    def __init__(self, graph: ir.Graph, names: Names, name: str) -> None:
        self.graph, self.names, self.name = graph, names, name
        self.nodes: list[ir.Node] = []

    def one(
        self, op: str, *inputs: ir.Value, **attributes: int | list[int]
    ) -> ir.Value:
        given = ir.convenience.convert_attributes(attributes)
        name = self.names.node(f"{self.name}/{op}")
        node = ir.Node("", op, inputs, given, version=OPSET, name=name)
        node.outputs[0].name = self.names.value(name)
        self.nodes.append(node)
        return node.outputs[0]

    def ints(self, *numbers: int) -> ir.Value:
        array = np.array(numbers, np.int64)
        made = ir.Value(
            name=self.names.value(f"{self.name}/ints"),
            shape=ir.Shape(array.shape),
            type=ir.TensorType(ir.DataType.INT64),
            const_value=ir.Tensor(array),
        )
        self.graph.register_initializer(made)
        return made

    def joined(self, rows: ir.Value, axis: int, rank: int, *, turned: bool) -> ir.Value:
        """Rows [trips, ...] of this rank one behind the other along an axis of theirs.

        turned: the last one first.
        """
        if turned:
            ends = self.ints(-1), self.ints(LAST), self.ints(0), self.ints(-1)
            rows = self.one("Slice", rows, *ends)
        order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
        moved = self.one("Transpose", rows, perm=order)
        before = self.one("Shape", moved, start=0, end=axis)
        behind = self.one("Shape", moved, start=axis + 2)
        shape = self.one("Concat", before, self.ints(-1), behind, axis=0)
        return self.one("Reshape", moved, shape)

    def place(self) -> None:
        loop = self.nodes[0].inputs[0]
        assert loop is not None
        producer = loop.producer()
        assert producer is not None
        self.graph.insert_after(producer, self.nodes)
