"""How many of the rows that an operator finds are read at all.

Detectors suppress boxes without a limit, and keep the first hundred of what is left.
"""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.graph.evaluate import constant_of

OWNER = "nanoloom.owner"  # in the `meta` of a branch: its If
FIRST = 0


def rows_wanted(value: ir.Value) -> int | None:
    """The most leading rows of a value that its readers want; None for all."""
    found = [read_by(node, index) for node, index in value.uses()]
    if value.is_graph_output():
        found.append(given_out(value))
    known = [most for most in found if most is not None]
    return max(known) if known and len(known) == len(found) else None


def given_out(value: ir.Value) -> int | None:
    """Of what a branch gives, behind its If."""
    producer = value.producer()
    graph = None if producer is None else producer.graph
    owner = None if graph is None else graph.meta.get(OWNER)
    if graph is None or owner is None:
        return None
    places = [i for i, each in enumerate(graph.outputs) if each is value]
    found = [rows_wanted(owner.outputs[i]) for i in places]
    known = [most for most in found if most is not None]
    return max(known) if known and len(known) == len(found) else None


def read_by(node: ir.Node, index: int) -> int | None:
    """Of what a node reads as its input `index`."""
    if index != 0:
        return None
    match node.op_type:
        case "Slice":
            return cut_to(node)
        case "Gather" if axis_read(node) > FIRST:
            return rows_wanted(node.outputs[0])
        case "Squeeze" if squeezed(node):
            return rows_wanted(node.outputs[0])
        case "Identity" | "Cast":
            return rows_wanted(node.outputs[0])
        case _:
            return None


def cut_to(node: ir.Node) -> int | None:
    """Where a Slice of the first rows ends."""
    start, end, axes, steps = (numbers(node, i) for i in range(1, 5))
    axes = axes if len(node.inputs) > 3 else [FIRST]
    steps = steps if len(node.inputs) > 4 else [1]
    if (start, axes, steps) != ([FIRST], [FIRST], [1]) or not end:
        return None
    return end[0] if end[0] >= 0 else None


def axis_read(node: ir.Node) -> int:
    axis = node.attributes.get("axis")
    return FIRST if axis is None else axis.as_int()


def squeezed(node: ir.Node) -> bool:
    """Whether a Squeeze is known to leave the first axis."""
    given = node.attributes.get("axes")
    axes = numbers(node, 1) if given is None else list(given.as_ints())
    return bool(axes) and all(axis > FIRST for axis in axes)


def numbers(node: ir.Node, index: int) -> list[int] | None:
    """The integers of an input, if it is a constant: nodes behind are not folded."""
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None:
        return None
    known, producer = value.const_value, value.producer()
    if known is None and producer is not None and producer.op_type == "Constant":
        known = constant_of(producer)
    return None if known is None else [int(n) for n in known.numpy().reshape(-1)]
