"""Keys and values of earlier tokens stay where they are; new ones go behind them.

    present = Concat<axis = a>(past, new)
    ->  kept = nanoloom.Append<at = past's extent>(Transpose<p>(new))
        present = Transpose<inverse of p>(kept)

where p puts axis a first, so that what is appended lies behind what is there.  The
model's output is `kept`, whose first rows are written before the program is called.
Nothing reads `past`, which stays an input for its extents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from nanoloom.errors import Unsupported
from nanoloom.graph.editor import GraphEditor, inverse
from nanoloom.graph.orders import is_tensor_op
from nanoloom.graph.types import shape_of

DOMAIN = "nanoloom"
Pairs = Sequence[tuple[str, str]]  # names of an input and of the output that extends it


def append_in_place(graph: ir.Graph, pairs: Pairs) -> None:
    """Rewrite a graph with static shapes in place.

    Raises Unsupported, with the reason, for the first pair that is something else.
    """
    rewriting = Caches(graph)
    for past, present in pairs:
        reason = rewriting.visit(past, present)
        if reason:
            raise Unsupported(reason, where=f"output {present}")


@dataclass
class Caches(GraphEditor):
    """The graph being rewritten."""

    def visit(self, past: str, present: str) -> str:
        """Append in place; gives the reason where that is not the same."""
        source = next(x for x in self.graph.inputs if x.name == past)
        place = next(i for i, x in enumerate(self.graph.outputs) if x.name == present)
        joined = origin(self.graph.outputs[place])
        node = joined.producer()
        if (reason := refused(source, node)) or node is None:
            return reason
        self.append(node, place, present)
        return ""

    def append(self, node: ir.Node, place: int, present: str) -> None:
        """node: the Concat.  place: of the output among the graph's."""
        past, new = node.inputs
        assert past is not None and new is not None
        shape = shape_of(node.outputs[0])
        axis = node.attributes["axis"].as_int() % len(shape)
        order = [axis, *(d for d in range(len(shape)) if d != axis)]
        at = ir.AttrInt64("at", shape_of(past)[axis])
        turned = self.transpose(new, order, node)
        long = [shape[d] for d in order]
        kept = self.add(
            node, "Append", [turned], [at], long, new, node.name or present, DOMAIN
        )
        whole = self.transpose(kept, inverse(order), node)
        declared, joined = self.graph.outputs[place], node.outputs[0]
        self.graph.outputs[place] = kept
        ir.convenience.replace_all_uses_with(joined, whole)
        declared.name, kept.name = None, present


def origin(value: ir.Value) -> ir.Value:
    """What a value is a copy of."""
    node = value.producer()
    while node is not None and is_tensor_op(node, {"Identity"}):
        source = node.inputs[0]
        assert source is not None
        value, node = source, source.producer()
    return value


def refused(past: ir.Value, node: ir.Node | None) -> str:
    """Why what makes an output does not only put something behind an input."""
    if node is None or not is_tensor_op(node, {"Concat"}):
        made = "no operator" if node is None else node.op_type
        return f"it is made by {made}, not by Concat"
    if len(node.inputs) != 2 or node.inputs[0] is not past:
        return f"its Concat does not put one value behind {past.name}"
    readers = {user for user, _ in past.uses()}
    if readers != {node}:
        return f"{past.name} is read by others than its Concat"
    return ""
