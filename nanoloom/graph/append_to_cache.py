"""Keys and values of earlier tokens stay where they are; new ones go behind them.

    present = Concat<axis = a>(past, new)
    ->  kept = nanoloom.Append<at = past's extent>(Transpose<p>(new))
        present = Transpose<inverse of p>(kept)

where p puts axis a first, so that what is appended lies behind what is there.  The
model's output is `kept`, whose first rows are written before the program is called.
Nothing reads `past`, which stays an input for its extents.

Where one tensor stacks those of several layers, each part is an input and an output of
its own, `past[i, :, :]` and `present[i, :, :]`:

    present = Concat<axis = 0>(Unsqueeze(Concat<axis = a>(Gather(past, i), new)), ...)

A model that has another branch for the first tokens gives all rows there, and does not
read `past`: what is kept is Transpose<p>(present).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from nanoloom.errors import Unsupported
from nanoloom.graph.editor import GraphEditor, inverse
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.movement_origin import Part, StackedAxis, origin, parts_of, readers
from nanoloom.graph.types import shape_of
from nanoloom.interface.stacked_names import part_name

DOMAIN = "nanoloom"
Pairs = Sequence[tuple[str, str]]  # names of an input and of the output that extends it


def append_to_caches(graph: ir.Graph, pairs: Pairs, *, starts: bool = False) -> None:
    """Rewrite a graph with static shapes in place.

    starts: nothing is there yet, and no input of the pairs is read; they go.  Raises
    Unsupported, with the reason, for the first pair that is something else.
    """
    rewriting = Caches(graph)
    visit = rewriting.begin if starts else rewriting.visit
    for past, present in pairs:
        reason = visit(past, present)
        if reason:
            raise Unsupported(reason, where=f"output {present}")


@dataclass
class Caches(GraphEditor):
    """The graph being rewritten."""

    def pair(self, past: str, present: str) -> tuple[ir.Value, int, ir.Value]:
        """The input, and the output with its place among the others."""
        source = next(x for x in self.graph.inputs if x.name == past)
        place = next(i for i, x in enumerate(self.graph.outputs) if x.name == present)
        return source, place, self.graph.outputs[place]

    def visit(self, past: str, present: str) -> str:
        """Append in place; gives the reason where that is not the same."""
        source, place, made = self.pair(past, present)
        growing = longer(shape_of(source), shape_of(made))
        if growing is None:
            return f"it is not {past}, longer along one axis"
        parts: list[Part] = []
        for part in parts_of(made, growing):
            if reason := refused(source, part, growing):
                return reason
            parts.append(part)
        if not set(readers(source)) <= {part.value.producer() for part in parts}:
            return f"{past} is read by others than its Concat"
        made.name = f"{present}/declared"
        kept = [self.append(part, growing) for part in parts]
        self.graph.outputs[place : place + 1] = kept
        for part, value in zip(parts, kept, strict=True):
            value.name = part_name(present, part.index)
            self.read(part, growing, value)
        if parts[0].index != (None,) * len(shape_of(source)):
            self.apart(source, parts)
        return ""

    def begin(self, past: str, present: str) -> str:
        """Give all rows, the axis first that grows; or why they are not all."""
        source, place, made = self.pair(past, present)
        growing = longer(shape_of(source), shape_of(made))
        if growing is None:
            return f"it is not {past} of another length"
        if any(readers(source)):
            return f"{past} is read where nothing is kept yet"
        readers_of_all = list(made.uses())
        every = tuple(map(StackedAxis, range(len(shape_of(made)))))
        value, places, _ = origin(made, every)
        if any(isinstance(p, int) for p in places):
            value, places = made, every
        order, _ = axes_of(Part((), value, places), growing)
        kept = self.turned(value, order, f"{present}/first")
        rows = [growing, *(d for d in range(len(order)) if d != growing)]
        whole = self.turned(kept, inverse(rows), f"{present}/all")
        for node, number in readers_of_all:
            node.replace_input_with(number, whole)
        made.name, kept.name = f"{present}/declared", present
        self.graph.outputs[place] = kept
        self.graph.inputs.remove(source)
        return ""

    def turned(self, value: ir.Value, order: Sequence[int], name: str) -> ir.Value:
        """A value's transpose, right behind what makes it."""
        perm = ir.AttrInt64s("perm", list(order))
        node = ir.Node("", "Transpose", [value], [perm], name=name)
        maker = value.producer()
        (out,) = node.outputs
        out.name, out.type = f"{name}_made", value.type
        out.shape = ir.Shape([shape_of(value)[d] for d in order])
        if maker is None:
            self.graph.insert_before(self.graph[0], node)
        else:
            self.graph.insert_after(maker, node)
        return out

    def append(self, part: Part, growing: int) -> ir.Value:
        """What is kept of a part, its axis that grows in front of the others."""
        node = joining(part)
        past, new = node.inputs
        assert past is not None and new is not None
        order, ones = axes_of(part, growing)
        at = ir.AttrInt64("at", shape_of(past)[order[0]])
        turned = self.transpose(new, [*order, *ones], node)
        if ones:
            rows = [shape_of(new)[d] for d in order]
            turned = self.reshape(turned, rows, node)
        long = [shape_of(part.value)[d] for d in order]
        name = node.name or "Append"
        return self.add(node, "Append", [turned], [at], long, new, name, DOMAIN)

    def read(self, part: Part, growing: int, kept: ir.Value) -> None:
        """Let those that read what was joined read what is kept."""
        node = joining(part)
        order, ones = axes_of(part, growing)
        whole = kept
        if ones:
            shape = [*shape_of(kept), *(1 for _ in ones)]
            whole = self.reshape(kept, shape, node)
        whole = self.transpose(whole, inverse([*order, *ones]), node)
        ir.convenience.replace_all_uses_with(part.value, whole)

    def apart(self, past: ir.Value, parts: Sequence[Part]) -> None:
        """Inputs for the parts of what is stacked, in place of the whole."""
        place = self.graph.inputs.index(past)
        made: list[ir.Value] = []
        for part in parts:
            rows = zip(shape_of(past), part.index, strict=True)
            shape = ir.Shape([size for size, i in rows if i is None])
            name = part_name(past.name or "", part.index)
            made.append(ir.Value(name=name, shape=shape, type=past.type))
        self.graph.inputs[place : place + 1] = made


def longer(past: Sequence[int], present: Sequence[int]) -> int | None:
    """The one axis along which shapes differ."""
    if len(past) != len(present):
        return None
    axes = [d for d, n in enumerate(past) if present[d] != n]
    return axes[0] if len(axes) == 1 else None


def joining(part: Part) -> ir.Node:
    """The Concat that makes a part; only of one that is not refused."""
    node = part.value.producer()
    assert node is not None
    return node


def axes_of(part: Part, growing: int) -> tuple[list[int], list[int]]:
    """Axes of a part's value: the one that grows and the others in the stack's order.

    Then those of one element, which are none of the part.
    """
    axes = {p.axis: d for d, p in enumerate(part.places) if isinstance(p, StackedAxis)}
    order = [axes.pop(growing), *(axes[axis] for axis in sorted(axes))]
    return order, [d for d in range(len(part.places)) if d not in order]


def refused(past: ir.Value, part: Part, growing: int) -> str:
    """Why what makes a part of an output does not only put something behind an input's.

    The Concat may be of another order of axes, with axes of one element besides.
    """
    node, places = part.value.producer(), part.places
    if node is None or not is_tensor_op(node, {"Concat"}):
        made = "no operator" if node is None else node.op_type
        return f"it is made by {made}, not by Concat"
    axis = node.attributes["axis"].as_int() % len(places)
    first = node.inputs[0]
    if len(node.inputs) != 2 or first is None or places[axis] != StackedAxis(growing):
        return f"its Concat does not put one value behind {past.name}"
    if any(
        n != 1
        for n, p in zip(shape_of(part.value), places, strict=True)
        if isinstance(p, int)
    ):
        return "its Concat is of several parts of a stack"
    source, found, _ = origin(first, places)
    wanted = tuple(StackedAxis(d) if i is None else i for d, i in enumerate(part.index))
    if source is not past or found != wanted:
        return f"its Concat does not put one value behind {past.name}"
    return ""
