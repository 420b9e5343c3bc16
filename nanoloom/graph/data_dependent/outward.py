"""What bodies find out at run time, handed on to the graph around them.

A node of a body may have too little room for what it makes (rooms.py), and what a trip
shows may have a size that counts.  The node around the body gives both as outputs:

    y, needed, size = Loop(..., x, 0, -1)    the most that a trip needed, and its size
    y, needed       = If(c)                  0 of the branch that is not taken
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from nanoloom.graph.conditions import never_stops
from nanoloom.graph.data_dependent.count import Count, counts_of, set_counts
from nanoloom.graph.data_dependent.node_builder import INT64, OPSET, Maker
from nanoloom.graph.data_dependent.rooms import NEEDED, room_of, tell
from nanoloom.graph.data_dependent.trips import REPLACED
from nanoloom.graph.signatures import ints
from nanoloom.graph.splice import substitute
from nanoloom.graph.types import shape_of
from nanoloom.graph.unique_names import Names

HANDED = "nanoloom.handed"  # in the `meta` of a node: it hands on what is in its body
UNKNOWN = -1  # a size before the first trip


@dataclass(frozen=True)
class Places:
    """Where carried values stand behind others: among inputs, outputs of the body, and
    of the node."""

    inputs: int
    left: int
    outputs: int


def places_of(node: ir.Node) -> Places:
    """Behind what a Loop or Scan carries."""
    if node.op_type == "Loop":
        count = len(node.inputs)
        return Places(count, count - 1, count - 2)
    states = len(node.inputs) - node.attributes["num_scan_inputs"].as_int()
    return Places(states, states, states)


def hand_on(m: Maker, body: ir.Graph) -> None:
    """Put a Loop or Scan in the node's place that carries more, if its body has it.

    Its outputs are typed.
    """
    node, places = m.node, places_of(m.node)
    needed: dict[str, ir.Value] = body.meta.pop(NEEDED, {})
    shown = list(enumerate(body.outputs))[places.left :]
    sizes = [(i, axis, c) for i, x in shown for axis, c in counts_of(x).items()]
    if node.meta.get(HANDED) or not (needed or sizes):
        return
    node.meta[HANDED] = True
    before, after = list[ir.Value](), list[ir.Value]()
    for room, value in needed.items():
        before.append(state(m, "needed_before"))
        after.append(most_needed(m, body, value, before[-1]))
        if node.op_type == "Loop" and not never_stops(node):
            stop(m, body, after[-1], room)
    for _, _, count in sizes:
        before.append(state(m, "size_before"))
        after.append(same_size(m, body, count, before[-1]))
    starts = [m.ints(0) for _ in needed] + [m.ints(UNKNOWN) for _ in sizes]
    made, more = longer(m, body, places, starts, before, after)
    for room, value in zip(needed, more, strict=False):
        tell(m.decided, m.graph, room, value)
    for (i, axis, count), value in zip(sizes, more[len(needed) :], strict=True):
        size = m.count(m.one("Max", value, m.ints(0)), count.most, count)
        output = made[i - places.left + places.outputs]
        found = {axis_of(node, i - places.left, axis): size}
        set_counts(output, {**counts_of(output), **found})
    for old in node.outputs:
        old.shape = None  # as declared: of another size
    node.meta[REPLACED] = True
    substitute(m.graph, node, made)


def state(m: Maker, word: str) -> ir.Value:
    """One more number that a body is given, int64 [1]."""
    made = ir.Value(name=m.names.value(f"{m.node.name}/{word}"))
    made.type, made.shape = INT64, ir.Shape([1])
    return made


def behind(body: ir.Graph, value: ir.Value, names: Names, like: Maker) -> Maker:
    """Makes nodes at a body's end, behind an Identity of a value."""
    node = ir.Node("", "Identity", [value], version=OPSET, name=names.node("handed"))
    (made,) = node.outputs
    made.name, made.type, made.shape = names.value("handed"), INT64, ir.Shape([1])
    body.append(node)
    return Maker(body, node, names, like.version, decided=like.decided)


def most_needed(
    m: Maker, body: ir.Graph, value: ir.Value, before: ir.Value
) -> ir.Value:
    inner = behind(body, value, m.names, m)
    return inner.one("Max", inner.node.outputs[0], before)


def same_size(m: Maker, body: ir.Graph, count: Count, before: ir.Value) -> ir.Value:
    """The size, which is that of the trip before; the program says where it is not."""
    inner = behind(body, count.value, m.names, m)
    now = inner.node.outputs[0]
    is_first = inner.one("Less", before, inner.ints(0))
    wanted = inner.one("Where", is_first, now, before)
    return inner.own("SameSize", [wanted, now], [([1], INT64)])[0]


def stop(m: Maker, body: ir.Graph, needed: ir.Value, room: str) -> None:
    """End a Loop where its body had too little room: its numbers mean nothing then."""
    condition = body.outputs[0]
    had = room_of(m.decided, room)
    assert had is not None, "it was asked for before"
    inner = behind(body, needed, m.names, m)
    fits = inner.one("LessOrEqual", inner.node.outputs[0], inner.ints(had))
    fits = inner.one("Reshape", fits, inner.ints(*shape_of(condition)))
    body.outputs[0] = inner.one("And", condition, fits)


def longer(
    m: Maker,
    body: ir.Graph,
    places: Places,
    starts: Sequence[ir.Value],
    before: Sequence[ir.Value],
    after: Sequence[ir.Value],
) -> tuple[list[ir.Value], list[ir.Value]]:
    """The node with more carried values: its outputs as they were, and the new ones."""
    node = m.node
    inputs, outputs, formals = list(node.inputs), list(body.outputs), list(body.inputs)
    inputs[places.inputs : places.inputs] = starts
    formals[places.inputs : places.inputs] = before
    outputs[places.left : places.left] = after
    for values, now in ((body.inputs, formals), (body.outputs, outputs)):
        values.clear()
        values.extend(now)
    node.attributes.pop("body")
    made = ir.Node(
        "",
        node.op_type,
        inputs,
        [*node.attributes.values(), ir.AttrGraph("body", body)],
        num_outputs=len(node.outputs) + len(starts),
        version=node.version,
        name=m.names.node(f"{node.name}/handing"),
    )
    made.meta.update(node.meta)
    m.graph.insert_after(m.last, made)
    m.last = made
    values = list(made.outputs)
    more = values[places.outputs : places.outputs + len(starts)]
    kept = [x for x in values if x not in more]
    there = dict(zip(node.outputs, kept, strict=True))
    for old, new in there.items():
        new.name = m.names.value(f"{made.name}/output")
        new.type, new.shape = old.type, old.shape
        new.meta.update(old.meta)
        known = counts_of(old).items()
        counts = {i: replace(c, value=there.get(c.value, c.value)) for i, c in known}
        set_counts(new, counts)
    for value in more:
        value.name = m.names.value(f"{made.name}/handed")
        value.type, value.shape = INT64, ir.Shape([1])
    return kept, more


def axis_of(node: ir.Node, scan: int, axis: int) -> int:
    """Where an axis of what a trip shows lies in the output of all trips."""
    if node.op_type == "Loop":
        return axis + 1
    value = node.outputs[places_of(node).outputs + scan]
    rank = len(shape_of(value))
    along = ints(node, "scan_output_axes", len(node.outputs) - places_of(node).outputs)
    return axis + (axis >= along[scan] % rank)


def hand_on_branches(m: Maker, bodies: Sequence[ir.Graph]) -> None:
    """Let an If give what its branches needed: 0 of one that does not."""
    found: list[dict[str, ir.Value]] = [body.meta.pop(NEEDED, {}) for body in bodies]
    for room in dict.fromkeys(room for each in found for room in each):
        for body, each in zip(bodies, found, strict=True):
            needed = each[room] if room in each else m.ints(0)
            inner = behind(body, needed, m.names, m)
            body.outputs.append(inner.node.outputs[0])
        m.node.resize_outputs(len(m.node.outputs) + 1)
        value = m.node.outputs[-1]
        value.name = m.names.value(f"{m.node.name}/needed")
        value.type, value.shape = INT64, ir.Shape([1])
        tell(m.decided, m.graph, room, value)
