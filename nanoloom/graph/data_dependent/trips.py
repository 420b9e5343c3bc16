"""Loops with scan outputs that end when the data say: the number of trips counts.

The loop carries two more values, the number of its trips and whether it would go on:

    y, n, more = Loop(min(M, room), condition, x, 0, true)  ->  n of `room` rows count

What the model's number of trips allows is room enough where that is little; else a run
has some room, and says how many rows it wanted (rooms.py).
"""

from __future__ import annotations

from math import prod

import numpy as np
import onnx_ir as ir

from nanoloom.graph.conditions import scalar
from nanoloom.graph.data_dependent.count import set_counts
from nanoloom.graph.data_dependent.node_builder import INT64, OPSET, Maker
from nanoloom.graph.data_dependent.rooms import (
    Unbounded,
    room_of,
    tell,
)
from nanoloom.graph.splice import substitute
from nanoloom.graph.types import shape_of
from nanoloom.interface.room_names import EXACT

TRIPS = "nanoloom.trips"  # in the `meta` of a Loop: for how many its outputs have room
REPLACED = "nanoloom.replaced"  # in the `meta` of a node: others take its place
LITTLE = 1 << 26  # bytes of scan outputs, which a run may have without being asked
BOOL = ir.TensorType(ir.DataType.BOOL)
LEADING = 2  # a number of trips and a condition


def count_trips(m: Maker, body: ir.Graph, typed: ir.Graph) -> None:
    """Put a loop that counts its trips in the node's place.

    body: as the model has it; typed: the same, its shapes known.  Raises Unbounded
    where the model gives no number of trips, and the program no room.
    """
    node = m.node
    carried = len(node.inputs) - LEADING
    row = sum(bytes_of(x) for x in typed.outputs[1 + carried :])
    most = scalar(node.inputs[0])
    room = None
    if most is None or most * row > LITTLE:
        why = "its condition decides how many trips its scan outputs have"
        room = asked(m, node.name or "", why)
    extent = max(0, most or 0) if room is None else room
    limit, condition = node.inputs[:LEADING]
    limit = None if limit is None else m.flat(limit)
    within = limit
    if room is not None:
        within = m.ints(room) if limit is None else m.one("Min", limit, m.ints(room))
    goes = m.constant(np.array([True]))
    if condition is not None:
        goes = m.one("Reshape", condition, m.ints(1))
    start = [within, condition, *node.inputs[LEADING:], m.ints(0), goes]
    made = looped(m, counting(m, body, carried), start, extent)
    number, more = made[carried : carried + LEADING]
    for value, kind in ((number, INT64), (more, BOOL)):
        value.type, value.shape = kind, ir.Shape([1])
    if room is not None:
        if limit is not None:
            more = m.one("And", more, m.one("Less", number, limit))
        more = m.one("Cast", more, to=int(ir.DataType.INT64))
        tell(m.decided, m.graph, node.name or "", m.one("Add", number, more))
    count = m.count(number, extent)
    scans = made[carried + LEADING :]
    for value in scans:
        set_counts(value, {0: count})
    for old in node.outputs:
        old.shape = None  # as declared: of another size
    node.meta[REPLACED] = True
    substitute(m.graph, node, [*made[:carried], *scans])


def fix_trips(m: Maker) -> None:
    """Let a loop that runs all its trips have as many as the program has room for."""
    given = m.node.inputs[0]
    assert given is not None
    name = f"{EXACT}{m.node.name}"
    why = "how many trips its scan outputs have is known at run time"
    trips = asked(m, name, why)
    tell(m.decided, m.graph, name, m.one("Max", m.flat(given), m.ints(0)))
    m.node.replace_input_with(0, m.ints(trips))
    m.node.meta[TRIPS] = trips


def asked(m: Maker, name: str, why: str) -> int:
    """The room of this program by its name; raises Unbounded where there is none."""
    room = room_of(m.decided, name)
    if room is None:
        hint = "give the loop a constant number of trips"
        raise Unbounded([name], why, tuple(m.sources()), where=m.where, hint=hint)
    return room


def counting(m: Maker, body: ir.Graph, carried: int) -> ir.Graph:
    """The body with two more values that it carries."""
    number, flat, sofar, going = (
        ir.Value(name=m.names.value(f"{m.node.name}/{word}"))
        for word in ("trips", "trip", "trips_before", "going_before")
    )
    for value in (sofar, number):
        value.type, value.shape = INT64, ir.Shape([1])
    going.type, going.shape = BOOL, ir.Shape([1])
    one = m.ints(1)
    flatten = own(m, "Reshape", [body.inputs[0], one], flat)
    add = own(m, "Add", [flat, one], number)
    after = ir.Value(name=m.names.value(f"{m.node.name}/going"))
    going_on = own(m, "Reshape", [body.outputs[0], one], after)
    body.extend([flatten, add, going_on])
    body.inputs.extend([sofar, going])
    outputs = list(body.outputs)
    body.outputs.clear()
    body.outputs.extend(
        [*outputs[: 1 + carried], number, after, *outputs[1 + carried :]]
    )
    return body


def own(m: Maker, op: str, inputs: list[ir.Value], output: ir.Value) -> ir.Node:
    name = m.names.node(f"{m.node.name}/{op}")
    return ir.Node("", op, inputs, outputs=[output], version=OPSET, name=name)


def looped(
    m: Maker, body: ir.Graph, inputs: list[ir.Value | None], extent: int
) -> list[ir.Value]:
    """A Loop whose scan outputs have room for so many trips."""
    node = ir.Node(
        "",
        "Loop",
        inputs,
        [ir.AttrGraph("body", body)],
        num_outputs=len(body.outputs) - 1,
        version=m.node.version,
        name=m.names.node(f"{m.node.name}/counted"),
    )
    node.meta[TRIPS] = extent
    for value in node.outputs:
        value.name = m.names.value(f"{node.name}/output")
    m.graph.insert_after(m.last, node)
    m.last = node
    return list(node.outputs)


def bytes_of(value: ir.Value) -> int:
    assert value.dtype is not None
    return int(prod(shape_of(value)) * value.dtype.itemsize)


def decided_alone(node: ir.Node, body: ir.Graph) -> bool:
    """Whether a loop's condition is computed of constants and the trip's number."""
    known = {body.inputs[0], body.inputs[1]}
    pairs = list(zip(body.inputs[LEADING:], body.outputs[1:], strict=False))
    given = zip(pairs, node.inputs[LEADING:], strict=True)
    states = {p for p, x in given if x is not None and x.const_value is not None}
    condition = node.inputs[1]
    if condition is not None and condition.const_value is None:
        return False
    while True:
        found = known_in(body, known | {before for before, _ in states})
        left = {pair for pair in states if pair[1] in found}
        if left == states:
            return body.outputs[0] in found
        states = left


def known_in(body: ir.Graph, known: set[ir.Value]) -> set[ir.Value]:
    """The values that these decide alone."""
    found = set(known)
    for node in body:
        if any(a.type == ir.AttributeType.GRAPH for a in node.attributes.values()):
            continue
        given = [x for x in node.inputs if x is not None]
        if all(x in found or x.const_value is not None for x in given):
            found |= set(node.outputs)
    return found | {x for x in body.outputs if x.const_value is not None}
