"""What a Loop carries only to add to it is a scan output: what each trip adds."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from nanoloom.graph.unique_names import Names

CARRIED = 2  # inputs of a Loop before what it carries


def only_reader(body: ir.Graph, index: int, op: str) -> ir.Node | None:
    """The node of this operator that is all that a trip does with what it carries.

    It makes the value for the next trip, and is read by nothing else.
    """
    formal = body.inputs[CARRIED + index]
    last = body.outputs[1 + index].producer()
    if last is None or last.op_type != op or last.graph is not body:
        return None
    shown = sum(x is last.outputs[0] for x in body.outputs)
    is_read = bool(last.outputs[0].uses()) or shown > 1 or formal in body.outputs
    readers = [user for user, _ in formal.uses()]
    return last if readers == [last] and not is_read else None


def to_scan_outputs(
    graph: ir.Graph,
    node: ir.Node,
    found: Mapping[int, tuple[ir.Node, ir.Value]],
    names: Names,
) -> tuple[list[ir.Value | None], list[ir.Value]]:
    """Put a Loop behind a node that shows values in place of carrying others.

    found: by what is carried, the node that reads it alone, and what each trip shows.
    Returns what takes the place of the node's outputs, None of those, and their rows.
    """
    body = node.attributes["body"].as_graph()
    count = len(node.inputs) - CARRIED
    kept = [i for i in range(count) if i not in found]
    outputs = list(body.outputs)
    rows: list[ir.Value] = []
    for _, row in found.values():
        rows.append(row if row not in rows and is_own(body, row) else copy(body, row))
    for row in rows:
        row.name = row.name or names.value("row")
    left = [outputs[0], *(outputs[1 + i] for i in kept), *outputs[1 + count :]]
    body.outputs.clear()
    body.outputs.extend([*left, *rows])
    for reader, _ in found.values():
        for place in range(len(reader.inputs)):
            reader.replace_input_with(place, None)
        body.remove(reader, safe=True)
    for formal in [body.inputs[CARRIED + i] for i in found]:
        body.inputs.remove(formal)
    inputs = [*node.inputs[:CARRIED], *(node.inputs[CARRIED + i] for i in kept)]
    attributes = list(node.attributes.values())
    node.attributes.clear()
    total = len(body.outputs) - 1
    made = ir.Node("", "Loop", inputs, attributes, num_outputs=total, name=node.name)
    values: list[ir.Value | None] = list(made.outputs[: len(left) - 1])
    for i in found:
        values.insert(i, None)
    for old, new in zip(node.outputs, values, strict=True):
        if new is not None:
            new.name = old.name
    stacked = list(made.outputs[len(left) - 1 :])
    for i, value in zip(found, stacked, strict=True):
        value.name = names.value(f"{node.outputs[i].name}/rows")
    graph.insert_after(node, made)
    return values, stacked


def is_own(body: ir.Graph, row: ir.Value) -> bool:
    """Whether the body makes a value, and does not show it yet."""
    node = row.producer()
    return node is not None and node.graph is body and row not in body.outputs


def copy(body: ir.Graph, row: ir.Value) -> ir.Value:
    """What comes from outside is shown by a value of the body's own."""
    node = ir.Node("", "Identity", [row], name=f"{row.name}/row")
    body.append(node)
    return node.outputs[0]
