"""Loops whose shapes change from trip to trip, written out one trip after the other.

A `Loop` becomes its first trip followed by the rest of itself, and so on while the walk
over the graph goes forward: when the next trip is written, the constants and shapes of
the one before are known.  The rest is a node of this stage only:

    nanoloom::Rest(condition, carried..., pieces...) -> the Loop's outputs

pieces: what the trips before gave for the scan outputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from nanoloom.errors import DataDependent, Unsupported
from nanoloom.graph.splice import inline_graph, substitute
from nanoloom.graph.types import integer_sources, is_static, shape_of
from nanoloom.graph.unique_names import Names, rename

if TYPE_CHECKING:
    from collections.abc import Sequence

DOMAIN = "nanoloom"
MOST_TRIPS = 4096
OPSET = 13  # of the operators that join the pieces


def is_rest(node: ir.Node) -> bool:
    return node.domain == DOMAIN and node.op_type == "Rest"


def start(graph: ir.Graph, node: ir.Node, body: ir.Graph) -> None:
    """Put `Rest` in the place of a Loop.  body: as the model has it."""
    limit = node.inputs[0]
    trips = -1
    if limit is not None:
        assert limit.const_value is not None
        trips = max(0, int(limit.const_value.numpy().reshape(-1)[0]))
    follow(graph, node, node.inputs[1:], Trip(body, 0, trips, len(node.inputs) - 2))


class Trip:
    """Which trip comes next.  last: the number of trips, -1 for no limit."""

    def __init__(self, body: ir.Graph, number: int, last: int, carried: int) -> None:
        self.body, self.number, self.last, self.carried = body, number, last, carried


def follow(
    graph: ir.Graph,
    node: ir.Node,
    inputs: Sequence[ir.Value | None],
    trip: Trip,
    after: ir.Node | None = None,
) -> None:
    """Replace a node by the `Rest` that begins with `trip`."""
    rest = ir.Node(
        DOMAIN, "Rest", inputs, num_outputs=len(node.outputs), name=node.name
    )
    rest.meta["trip"] = trip
    graph.insert_after(after or node, rest)
    for old, new in zip(node.outputs, rest.outputs, strict=True):
        new.name = old.name
    substitute(graph, node, rest.outputs)


def step(graph: ir.Graph, node: ir.Node, names: Names) -> None:
    """Write out one trip, or end the loop; a refusal if nobody can tell which."""
    trip: Trip = node.meta["trip"]
    condition = node.inputs[0]
    where = f"node {node.name} (Loop)"
    if condition is not None and condition.const_value is None:
        raise DataDependent(
            f"its shapes change from trip to trip, and whether trip {trip.number} "
            "runs depends on the data",
            integer_sources([condition]),
            where=where,
            hint="give the loop a constant number of trips and a constant condition",
        )
    runs = condition is None or bool(condition.const_value.numpy().reshape(-1)[0])  # type: ignore[union-attr]
    if not runs or trip.number == trip.last:
        finish(graph, node, trip)
        return
    if trip.number >= MOST_TRIPS:
        raise Unsupported(
            f"its shapes change from trip to trip, for more than {MOST_TRIPS} trips",
            where=where,
        )
    write(graph, node, trip, names)


def write(graph: ir.Graph, node: ir.Node, trip: Trip, names: Names) -> None:
    """One trip's nodes with its number as a constant, then the rest."""
    body = trip.body.clone(allow_outer_scope_values=True)
    rename(body, names, f"{node.name}/{trip.number}/")
    last = list(body)[-1]
    number = constant(graph, body.inputs[0], np.array(trip.number, np.int64))
    running = constant(graph, body.inputs[1], np.array(True))
    carried = node.inputs[1 : 1 + trip.carried]
    pieces = node.inputs[1 + trip.carried :]
    made = inline_graph(body, [number, running, *carried], graph, node)
    inputs = [*made[: 1 + trip.carried], *pieces, *made[1 + trip.carried :]]
    rest = Trip(trip.body, trip.number + 1, trip.last, trip.carried)
    follow(graph, node, inputs, rest, after=last)


def constant(graph: ir.Graph, formal: ir.Value, array: np.ndarray) -> ir.Value:
    """A constant in the place of a body's input, in the shape that this declares."""
    if formal.shape is not None and is_static(formal):
        array = array.reshape(shape_of(formal))
    made = ir.Value(
        name=formal.name,
        shape=ir.Shape(array.shape),
        type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
        const_value=ir.Tensor(array),
    )
    graph.register_initializer(made)
    return made


def finish(graph: ir.Graph, node: ir.Node, trip: Trip) -> None:
    """The values carried out of the last trip, and the pieces joined along axis 0."""
    carried = node.inputs[1 : 1 + trip.carried]
    pieces = node.inputs[1 + trip.carried :]
    scans = len(node.outputs) - trip.carried
    joined: list[ir.Value | None] = []
    axes = ir.Value(
        name=f"{node.name}/axes",
        shape=ir.Shape([1]),
        type=ir.TensorType(ir.DataType.INT64),
        const_value=ir.Tensor(np.zeros(1, np.int64)),
    )
    after = node
    for i in range(scans):
        if not pieces:
            raise Unsupported(
                "it runs no trip, and the shapes of its scan outputs are not known",
                where=f"node {node.name} (Loop)",
            )
        parts: list[ir.Node] = [
            ir.Node("", "Unsqueeze", [x, axes], version=OPSET) for x in pieces[i::scans]
        ]
        whole = ir.Node(
            "",
            "Concat",
            [x.outputs[0] for x in parts],
            [ir.AttrInt64("axis", 0)],
            version=OPSET,
        )
        for k, part in enumerate([*parts, whole]):
            part.name = f"{node.name}/join.{i}.{k}"
            part.outputs[0].name = f"{node.name}/joined.{i}.{k}"
        graph.insert_after(after, [*parts, whole])
        after = whole
        joined.append(whole.outputs[0])
    if scans:
        graph.register_initializer(axes)
    substitute(graph, node, [*carried, *joined])
