"""Slices put into a tensor: of one that the graph changes, written where they lie.

    slice_scatter(x, copy(slice(x, ...), u), ...)   ->   ScatterND(x, places, u)

A cache that is an input keeps all other rows where they are then; slices of slices are
one write.  Of other tensors the result is what lies around the slice, and the slice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from torch import fx

from nanoloom.frontend.torch.call import Call, arguments, fake_of
from nanoloom.frontend.torch.movement import LARGEST
from nanoloom.frontend.torch.writer import INT64

VIEWS = {"aten::slice_scatter": "aten::slice", "aten::select_scatter": "aten::select"}


@dataclass(frozen=True)
class Part:
    """Rows start, start + step, ... of an axis; one, which is no axis, if is_row."""

    axis: int
    start: int | ir.Value
    length: int
    step: int
    is_row: bool


def select_scatter(call: Call) -> ir.Value:
    if (made := in_place(call)) is not None:
        return made
    axis = call.axis("dim")
    src = call.w("Unsqueeze", call.value("src", call.dtype), call.w.constant([axis]))
    return surrounded(call, src, axis, start_of(call, call.node, axis))


def slice_scatter(call: Call) -> ir.Value:
    axis = call.axis("dim")
    src = call.value("src", call.dtype)
    is_whole = not call["start"] and call["end"] in (None, LARGEST)
    if is_whole and call["step"] in (None, 1):
        return call.w("Expand", src, call.w.ints(call.shape))
    if (made := in_place(call)) is not None:
        return made
    if call["step"] not in (None, 1):
        raise call.refuse("replaces rows of a number that is not known")
    return surrounded(call, src, axis, start_of(call, call.node, axis))


def surrounded(call: Call, src: ir.Value, axis: int, start: int | ir.Value) -> ir.Value:
    """What is before the place, the new rows, and what is behind."""
    w, x = call.w, call.value("self")
    at, zero = w.constant([axis]), w.constant([0])
    begin = w.ints([start])
    count = w.typed(INT64, "Shape", src, start=axis, end=axis + 1)
    before = w("Slice", x, zero, begin, at)
    behind = w("Slice", x, w("Add", begin, count), w.constant([LARGEST]), at)
    return w("Concat", before, src, behind, axis=axis)


def start_of(call: Call, node: fx.Node, axis: int) -> int | ir.Value:
    """From the front, as torch takes it: none is outside of the axis."""
    said, w = arguments(node), call.w
    given = said.get("index") if "index" in said else said.get("start")
    start = call.size(0 if given is None else given)
    if isinstance(start, int) and start == 0:
        return 0
    size = call.sizes.of(fake_of(said["self"]).shape[axis])
    if isinstance(start, int) and isinstance(size, int):
        return min(max(start + size if start < 0 else start, 0), size)
    value, most = call.sizes.operand(start), call.sizes.operand(size)
    zero = w.constant(0)
    negative = w.typed(ir.DataType.BOOL, "Less", value, zero)
    value = w.typed(INT64, "Where", negative, w("Add", value, most), value)
    return w("Min", w("Max", value, zero), most)


def in_place(call: Call) -> ir.Value | None:
    """The write into what the graph changes; also of every second row or fewer.

    None where that is another tensor, or how many rows there are is not known.
    """
    steps = call["step"] not in (None, 1)
    if not steps and origin(call.node) not in call.changed:
        return None
    parts, source = [part_of(call, call.node)], call.args["src"]
    outer = call.node
    while (inner := write_within(source, outer)) is not None:
        parts.append(part_of(call, inner))
        source, outer = arguments(inner)["src"], inner
    known = [part for part in parts if part is not None]
    return put(call, known, source) if len(known) == len(parts) else None


def origin(node: fx.Node) -> fx.Node:
    """The tensor that writes, one into the result of the other, began with."""
    while name_of(node) in VIEWS and isinstance(node.args[0], fx.Node):
        node = node.args[0]
    return node


def name_of(node: object) -> str:
    schema = getattr(getattr(node, "target", None), "_schema", None)
    return schema.name if schema is not None else ""


def write_within(source: object, outer: fx.Node) -> fx.Node | None:
    """A write into the same slice as `outer` puts back, which it puts back."""
    while name_of(source) == "aten::copy":
        source = source.args[1]  # type: ignore[attr-defined] - has a schema: a node
    if not isinstance(source, fx.Node) or name_of(source) not in VIEWS:
        return None
    view, said = source.args[0], arguments(outer)
    if not isinstance(view, fx.Node) or name_of(view) != VIEWS[name_of(outer)]:
        return None
    seen = arguments(view)
    same = all(seen[name] == said[name] for name in seen)
    return source if same else None


def part_of(call: Call, node: fx.Node) -> Part | None:
    said = arguments(node)
    fake = fake_of(said["self"])
    axis = said["dim"] % max(fake.dim(), 1)
    start = start_of(call, node, axis)
    if "index" in said:
        return Part(axis, start, 1, 1, is_row=True)
    length, step = fake_of(said["src"]).shape[axis], said["step"]
    if not isinstance(length, int) or not isinstance(step, int):
        return None
    return Part(axis, start, length, step, is_row=False)


def put(call: Call, parts: list[Part], source: object) -> ir.Value:
    """ScatterND along the axes of the parts, each of which is one of that before."""
    w, rank = call.w, call.rank
    axes, gone = list(range(rank)), list[int]()
    places: dict[int, ir.Value] = {}
    lengths: dict[int, int] = {}
    for part in parts:
        axis = axes[part.axis]
        rows = w.constant(np.arange(part.length) * part.step)
        found = w("Add", call.sizes.operand(part.start), rows)
        whole = places.get(axis)
        places[axis] = found if whole is None else w("Gather", whole, found, axis=0)
        lengths[axis] = part.length
        if part.is_row:
            gone.append(axes.pop(part.axis))
    chosen = sorted(places)
    new = call.of(source, call.dtype)
    if gone:
        new = w("Unsqueeze", new, w.constant(sorted(gone)))
    order = [*chosen, *(a for a in range(rank) if a not in places)]
    x = call.value("self")
    if order != sorted(order):
        x, new = (w("Transpose", each, perm=order) for each in (x, new))
    at = spots(call, [(places[axis], lengths[axis]) for axis in chosen])
    made = w("ScatterND", x, at, new)
    if order == sorted(order):
        return made
    return w("Transpose", made, perm=[order.index(a) for a in range(rank)])


def spots(call: Call, places: list[tuple[ir.Value, int]]) -> ir.Value:
    """All combinations of places along axes: [lengths..., axes]."""
    w, lengths = call.w, [length for _, length in places]
    columns: list[ir.Value] = []
    for number, (rows, length) in enumerate(places):
        shape = [1] * (len(places) + 1)
        shape[number] = length
        column = w.reshape(rows, shape)
        columns.append(w("Expand", column, w.constant([*lengths, 1])))
    return columns[0] if len(columns) == 1 else w("Concat", *columns, axis=-1)


OPERATORS = {"select_scatter": select_scatter, "slice_scatter": slice_scatter}
