"""Loops that append to a sequence, a tensor a trip: what they append is a scan output.

    s = Loop(trips, goes_on, SequenceEmpty())  with  s' = SequenceInsert(s, x)
    -> rows = Loop(trips, goes_on)  with the scan output x

The sequence is known by its tensors one behind the other, however many there are.
"""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.graph.sequences.change import STACKED, elements_of, note
from nanoloom.graph.splice import substitute
from nanoloom.graph.unique_names import Names

READERS = {"ConcatFromSequence", "SequenceAt", "SequenceLength"}
CARRIED = 2  # inputs of a Loop before what it carries


def append_rows(graph: ir.Graph, node: ir.Node, names: Names) -> bool:
    """Whether a Loop that appends has become one with scan outputs, behind it."""
    body = node.attributes["body"].as_graph()
    count = len(node.inputs) - CARRIED
    found = {
        i: added
        for i in range(count)
        if elements_of(node.inputs[CARRIED + i]) == ()
        and is_read(node.outputs[i])
        and (added := appended(body, i)) is not None
    }
    if not found:
        return False
    kept = [i for i in range(count) if i not in found]
    outputs = list(body.outputs)
    scans = outputs[1 + count :]
    rows = [x.inputs[1] for x in found.values()]
    body.outputs.clear()
    body.outputs.extend(
        x
        for x in (outputs[0], *(outputs[1 + i] for i in kept), *scans, *rows)
        if x is not None
    )
    for insert in found.values():
        insert.replace_input_with(0, None)
        body.remove(insert, safe=True)
    formals = [body.inputs[CARRIED + i] for i in found]
    for formal in formals:
        body.inputs.remove(formal)
    inputs = [*node.inputs[:CARRIED], *(node.inputs[CARRIED + i] for i in kept)]
    attributes = list(node.attributes.values())
    node.attributes.clear()
    total = len(kept) + len(scans) + len(rows)
    made = ir.Node("", "Loop", inputs, attributes, num_outputs=total, name=node.name)
    tensors = [*(node.outputs[i] for i in kept), *node.outputs[count:]]
    places: dict[ir.Value, ir.Value] = dict(
        zip(tensors, made.outputs[: len(tensors)], strict=True)
    )
    for old, new in places.items():
        new.name = old.name
    for i, stacked in zip(found, made.outputs[len(tensors) :], strict=True):
        stacked.name = names.value(f"{node.outputs[i].name}/rows")
        note(node.outputs[i], STACKED, stacked)
    graph.insert_after(node, made)
    substitute(graph, node, [places.get(x) for x in node.outputs])
    return True


def is_read(value: ir.Value) -> bool:
    """Whether all that happens to a sequence takes its tensors as one."""
    readers = {user.op_type for user, _ in value.uses()}
    return readers <= READERS and not value.is_graph_output()


def appended(body: ir.Graph, index: int) -> ir.Node | None:
    """The SequenceInsert that is all that a trip does with a sequence; or None."""
    formal = body.inputs[CARRIED + index]
    uses = [user for user, _ in formal.uses()]
    last = body.outputs[1 + index].producer()
    if last is None or last.op_type != "SequenceInsert" or uses != [last]:
        return None
    place = last.inputs[2] if len(last.inputs) > 2 else None
    alone = not last.outputs[0].uses() and last.inputs[0] is formal
    return last if alone and place is None and last.graph is body else None
