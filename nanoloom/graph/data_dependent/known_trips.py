"""How often a Loop runs whose condition its constants and the trip's number decide.

What the condition is computed of is run here, trip after trip, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.graph.conditions import scalar
from nanoloom.graph.data_dependent.node_builder import Maker
from nanoloom.graph.evaluate import Evaluation
from nanoloom.graph.folding import agrees
from nanoloom.graph.types import shape_of

LEADING = 2  # a number of trips and a condition
FEW = 16  # trips, which are written out: what they make of constants is a constant
MOST = 1 << 14  # trips that are run here
Arrays = dict[ir.Value, np.ndarray]


@dataclass(frozen=True)
class Condition:
    """What a body's condition is computed of: nodes in order, and the body's inputs."""

    body: ir.Graph
    nodes: Sequence[tuple[ir.Node, Evaluation]]
    read: Sequence[ir.Value]

    def after(self, given: Arrays) -> Arrays | None:
        """What is read by the trip behind one that reads these; None for unknown."""
        made = dict(given)
        for node, evaluation in self.nodes:
            arrays = [None if x is None else known(x, made) for x in node.inputs]
            results = evaluation.given(arrays)
            if results is None:
                return None
            pairs = zip(node.outputs, results, strict=True)
            made |= {x: array for x, array in pairs if array is not None}
        places = {x: i - 1 for i, x in enumerate(self.body.inputs)}
        behind = {x: self.body.outputs[places[x]] for x in self.read if places[x] >= 0}
        return {x: known(value, made) for x, value in behind.items()}


def run_all(m: Maker, body: ir.Graph, trips: int) -> None:
    """Let a Loop run so many trips whatever its condition says."""
    old = body.outputs[0]
    true = ir.Value(
        name=m.names.value(f"{m.node.name}/goes_on"),
        shape=old.shape,
        type=old.type,
        const_value=ir.Tensor(np.full(shape_of(old), True)),
    )
    body.register_initializer(true)
    body.outputs[0] = true
    m.node.replace_input_with(0, m.constant(np.array(trips)))
    m.node.replace_input_with(1, None)


def known(value: ir.Value, made: Arrays) -> np.ndarray:
    """A constant, or what was computed."""
    return made[value] if value.const_value is None else value.const_value.numpy()


def known_trips(node: ir.Node, body: ir.Graph, opset: int) -> int | None:
    """The number of trips of a Loop, MOST for any beyond; None where it is not known.

    body: its own, whose shapes and constants are known.
    """
    limit, starts = node.inputs[:LEADING]
    most = MOST if limit is None else scalar(limit)
    if most is None or (starts is not None and scalar(starts) is None):
        return None
    condition = condition_of(body, opset)
    now = None if condition is None else first(node, condition)
    if condition is None:
        return None
    number, goes_on = body.inputs[:LEADING]
    shape = () if number.shape is None else number.shape.numpy()
    trips, runs = 0, starts is None or bool(scalar(starts))
    while now is not None and runs and trips < min(most, MOST):
        now = condition.after({**now, number: np.full(shape, trips, np.int64)})
        runs, trips = now is not None and bool(now[goes_on].any()), trips + 1
    return None if now is None else trips


def first(node: ir.Node, condition: Condition) -> Arrays | None:
    """What the first trip reads; None where that is no constant."""
    made: Arrays = {}
    for formal, given in zip(condition.body.inputs[1:], node.inputs[1:], strict=True):
        if formal not in condition.read:
            continue
        if given is not None and given.const_value is None:
            return None
        made[formal] = known(given, {}) if given is not None else np.array(True)
    return made


def condition_of(body: ir.Graph, opset: int) -> Condition | None:
    """None for what is computed of other values, or by who knows what."""
    wanted, seen = [body.outputs[0]], set[ir.Value]()
    read, nodes = [body.inputs[1]], set[ir.Node]()
    while wanted:
        value = wanted.pop()
        if value in seen or value.const_value is not None:
            continue
        seen.add(value)
        if value in body.inputs:
            place = list(body.inputs).index(value)
            read += [value] if value not in read else []
            wanted += [body.outputs[place - 1]] if place else []
            continue
        made = value.producer()
        if made is None or made.graph is not body or not is_plain(made, opset):
            return None
        nodes.add(made)
        wanted += [x for x in made.inputs if x is not None]
    found: list[tuple[ir.Node, Evaluation]] = []
    for node in (x for x in body if x in nodes):
        given = [None if x is None else ir.Tensor(np.zeros(1)) for x in node.inputs]
        evaluation = Evaluation.on(node, {"": opset}, given)
        if evaluation is None:
            return None
        found.append((node, evaluation))
    return Condition(body, found, read)


def is_plain(node: ir.Node, opset: int) -> bool:
    """Whether ONNX's reference may run a node here, on any numbers."""
    x, y = node.inputs[0] if node.inputs else None, node.outputs[0]
    if node.op_type in ("Cast", "CastLike") and (x is None or x.dtype != y.dtype):
        whole = x is not None and x.dtype is not None and x.dtype.is_integer()
        if not whole and y.dtype is not None and y.dtype.is_integer():
            return False  # ONNX does not say what becomes of numbers beyond
    bodies = any(a.type == ir.AttributeType.GRAPH for a in node.attributes.values())
    return node.domain == "" and not bodies and agrees(node, opset)
