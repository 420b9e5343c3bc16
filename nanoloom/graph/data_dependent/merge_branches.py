"""Branches of an If that give other sizes: the larger ones, and which of them count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from nanoloom.graph.data_dependent.count import (
    COUNT,
    Count,
    Size,
    most_of,
    set_counts,
    sizes_of,
)
from nanoloom.graph.data_dependent.decisions import Decisions
from nanoloom.graph.data_dependent.node_builder import INT64, Maker
from nanoloom.graph.types import (
    integer_sources,
    may_decide_shapes,
    shape_of,
    used_by,
)
from nanoloom.graph.unique_names import Names
from nanoloom.options import ANY_VALUE

OF_SHAPES = ("Shape", "Size")  # what they read does not matter


@dataclass(frozen=True)
class Join:
    """An If at run time whose bodies have outputs of known largest shapes.

    decided: by which of two sizes is larger.
    """

    node: ir.Node
    bodies: Sequence[ir.Graph]
    names: Names
    opset: int
    decided: Decisions

    def run(self) -> None:
        """Give both bodies outputs of one shape, and the node its shapes and counts.

        The numbers that count are more outputs of the node.  Ranks agree.
        """
        own = len(self.node.outputs)
        found = [self.join(i) for i in range(own)]
        self.node.resize_outputs(own + sum(map(len, found)))
        numbers = iter(self.node.outputs[own:])
        for value, inner, sizes in zip(
            self.node.outputs, self.bodies[0].outputs, found, strict=False
        ):
            value.type, value.shape = inner.type, ir.Shape(shape_of(inner))
            counts = {
                axis: self.count(next(numbers), shape_of(value)[axis], pair)
                for axis, pair in sizes.items()
            }
            set_counts(value, counts)

    def join(self, index: int) -> Mapping[int, Sequence[Size]]:
        """Pad an output in both bodies; the axes that count, and their sizes in each.

        The sizes are more outputs of the bodies.
        """
        sizes = [sizes_of(body.outputs[index]) for body in self.bodies]
        pairs = list(zip(*sizes, strict=True))
        extents = [self.decided.most(*map(most_of, pair)) for pair in pairs]
        axes = [axis for axis, pair in enumerate(pairs) if differ(*pair)]
        for body, given in zip(self.bodies, sizes, strict=True):
            self.grow(body, index, extents)
            for axis in axes:
                self.append(body, given[axis])
        return {axis: pairs[axis] for axis in axes}

    def grow(self, body: ir.Graph, index: int, extents: Sequence[int]) -> None:
        """Zeros behind an output along each axis, up to these extents."""
        value = body.outputs[index]
        shape = shape_of(value)
        if list(shape) == list(extents):
            return
        m = self.behind(body, value)
        body.outputs[index] = m.node.outputs[0]
        assert value.dtype is not None
        if 0 in shape:
            made = m.constant(np.zeros(extents, value.dtype.numpy()))
        else:
            more = [most - size for most, size in zip(extents, shape, strict=True)]
            made = m.one("Pad", value, m.ints(*[0] * len(shape), *more))
        m.replace((made, {}))

    def append(self, body: ir.Graph, size: Size) -> None:
        """A size as one more output of a body, int64 [1]."""
        m = self.behind(body, size.value if isinstance(size, Count) else None)
        if isinstance(size, int):
            m.node.replace_input_with(0, m.ints(size))
        (made,) = m.node.outputs
        made.type, made.shape = INT64, ir.Shape([1])
        body.outputs.append(made)

    def behind(self, body: ir.Graph, value: ir.Value | None) -> Maker:
        """Of an Identity at a body's end."""
        node = ir.Node("", "Identity", [value], name=self.names.node("joined"))
        node.outputs[0].name = self.names.value("joined")
        body.append(node)
        return Maker(body, node, self.names, self.opset)

    def count(self, value: ir.Value, most: int, sizes: Sequence[Size]) -> Count:
        """A number that the node gives, which is one of the branches' sizes."""
        graph = self.node.graph
        assert graph is not None, "a node that is looked at stands in a graph"
        m = Maker(graph, self.node, self.names, self.opset, deciding=(0,))
        value.name = self.names.value(f"{self.node.name}/size")
        made = m.count(value, most, *sizes)
        deciding = dict.fromkeys([*made.deciding, *m.decided_by()])
        made = replace(made, deciding=tuple(deciding))
        value.meta[COUNT] = made
        return made


def numbers_decide(node: ir.Node, decided: Decisions) -> bool:
    """Whether numbers of the data decide which branch is taken.

    Where inputs of one bool each do, there are few programs for all of their values,
    each with one branch alone, unless there is to be one; and one for each shape where
    sizes do.
    """
    root: ir.Graph | None = decided.root
    if root is not None and root.meta.get(ANY_VALUE):
        return reads_data(node.inputs[0])
    names = integer_sources([node.inputs[0]])
    flags = {x.name for x in ([] if root is None else root.inputs) if is_flag(x)}
    return reads_data(node.inputs[0]) and not (names and flags.issuperset(names))


def reads_data(value: ir.Value | None) -> bool:
    """Whether a value depends on more than shapes and constants."""
    waiting, seen = [value], set[ir.Value]()
    while waiting:
        value = waiting.pop()
        if value is None or value in seen or value.const_value is not None:
            continue
        seen.add(value)
        producer = value.producer()
        if producer is not None and producer.op_type not in OF_SHAPES:
            found = used_by(producer)
            if not found and producer.op_type != "Constant":
                return True  # drawn at random
            waiting += found
        elif producer is None and "outer" in value.meta:
            outer, index = value.meta["outer"]
            waiting.append(outer.inputs[index])
        elif producer is None and value.is_graph_input():
            return True
    return False


def is_flag(value: ir.Value) -> bool:
    is_bool = value.dtype == ir.DataType.BOOL and may_decide_shapes(value)
    return is_bool and all(size == 1 for size in shape_of(value))


def differ(one: Size, other: Size) -> bool:
    return not (isinstance(one, int) and isinstance(other, int) and one == other)
