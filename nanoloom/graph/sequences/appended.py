"""Loops that append to a sequence, a tensor a trip: what they append is a scan output.

    s = Loop(trips, goes_on, SequenceEmpty())  with  s' = SequenceInsert(s, x)
    -> rows = Loop(trips, goes_on)  with the scan output x

The sequence is known by its tensors one behind the other, however many there are.
"""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.graph.carried_to_scan import CARRIED, only_reader, to_scan_outputs
from nanoloom.graph.sequences.change import STACKED, elements_of, note
from nanoloom.graph.splice import substitute
from nanoloom.graph.unique_names import Names

READERS = {"ConcatFromSequence", "SequenceAt", "SequenceLength"}


def append_rows(graph: ir.Graph, node: ir.Node, names: Names) -> bool:
    """Whether a Loop that appends has become one with scan outputs, behind it."""
    body = node.attributes["body"].as_graph()
    found: dict[int, tuple[ir.Node, ir.Value]] = {}
    for i in range(len(node.inputs) - CARRIED):
        empty = elements_of(node.inputs[CARRIED + i]) == ()
        if empty and is_read(node.outputs[i]):
            added = appended(body, i)
            if added is not None and (row := added.inputs[1]) is not None:
                found[i] = added, row
    if not found:
        return False
    values, stacked = to_scan_outputs(graph, node, found, names)
    for i, rows in zip(found, stacked, strict=True):
        note(node.outputs[i], STACKED, rows)
    substitute(graph, node, values)
    return True


def is_read(value: ir.Value) -> bool:
    """Whether all that happens to a sequence takes its tensors as one."""
    readers = {user.op_type for user, _ in value.uses()}
    return readers <= READERS and not value.is_graph_output()


def appended(body: ir.Graph, index: int) -> ir.Node | None:
    """The SequenceInsert that is all that a trip does with a sequence; or None."""
    last = only_reader(body, index, "SequenceInsert")
    if last is None or last.inputs[0] is not body.inputs[CARRIED + index]:
        return None
    return last if len(last.inputs) < 3 or last.inputs[2] is None else None
