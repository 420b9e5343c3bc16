"""Rows that are only moved are read where they lie: rolls, windows and patches.

    Transpose(Reshape(Concat(Slice(x), Slice(x))))  ->  Gather(x, places)
    Gather(Normalization(x), places)                ->  Normalization(Gather(x, places))

A row is what lies along the last axis.  Swin rolls an image, cuts it into windows, and
goes back: each is one Gather then, which the normalization behind it, or the sum that
reads it, does while it reads.  For shapes that are known: places are constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import onnx_ir as ir

from nanoloom.graph.editor import GraphEditor
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.movement import moved, source_axes, whole
from nanoloom.graph.quantization import known_array, only_user
from nanoloom.graph.types import COMPUTED_TYPES, is_static, numpy_dtype, shape_of, size

MOVES = {"Concat", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}
LEAST = 64  # bytes of a row: shorter ones are rather turned by vectors


@dataclass(frozen=True, eq=False)
class Rows:
    """A value whose numbers [..., k * width] are rows of a source, k beside each other.

    places: int64 [..., k], of the source's rows.  joined: whether a Concat was on the
    way; a slice alone is read in place.
    """

    source: ir.Value
    places: np.ndarray
    joined: bool = False


def fold_movement(graph: ir.Graph) -> None:
    """Rewrite a graph with static shapes in place."""
    rewriting = FoldMovement(graph)
    for node in graph:
        if is_move(node):
            rewriting.visit(node)


@dataclass
class FoldMovement(GraphEditor):
    """The graph being rewritten."""

    found: dict[ir.Value, Rows] = field(default_factory=dict[ir.Value, Rows])

    def visit(self, node: ir.Node) -> None:
        """Read the rows of a chain's last value where its source has them."""
        (out,) = node.outputs
        if not is_static(out) or continues(out) or not shape_of(out):
            return
        rows = self.rows_of(out)
        if rows.source is out or not self.is_worth(rows, out):
            return
        source, places = rows.source, rows.places.reshape(-1)
        if (np.diff(places) == 1).all():
            return
        width = shape_of(source)[-1]
        axis = ir.AttrInt64("axis", 0)
        where = self.constant(places, f"{node.name}/places_{len(self.found)}")
        norm = source.producer() if ends_only_in(source, out) else None
        norm = norm if norm is not None and is_row_wise(norm) else None
        read = source if norm is None else norm.inputs[0]
        assert read is not None
        flat = self.reshape(read, (size(read) // width, width), node)
        name = f"{node.name}/rows"
        shape = (len(places), width)
        made = self.add(node, "Gather", [flat, where], [axis], shape, read, name)
        if norm is not None:
            last = [ir.AttrInt64("axis", -1)]
            kept = [a for a in norm.attributes.values() if a.name != "axis"]
            inputs = [made, *norm.inputs[1:]]
            name = f"{norm.name}/moved"
            made = self.add(node, norm.op_type, inputs, last + kept, shape, out, name)
        self.replace(node, self.reshape(made, shape_of(out), node))

    def is_worth(self, rows: Rows, out: ir.Value) -> bool:
        """Whether it takes several copies otherwise, or what is beside it reads so."""
        if rows.source.dtype not in COMPUTED_TYPES:
            return False
        if shape_of(rows.source)[-1] * numpy_dtype(rows.source).itemsize < LEAST:
            return False
        reader, maker = only_user(out), rows.source.producer()
        summed = reader is not None and is_tensor_op(reader, {"Add"})
        summed = summed and (maker is None or maker.op_type != "Reshape")  # heads
        normed = maker is not None and is_row_wise(maker)
        return rows.joined or summed or (normed and ends_only_in(rows.source, out))

    def rows_of(self, value: ir.Value) -> Rows:
        """A value as rows; its own, in order, where it is not made by moving others.

        Chains of moves may be long: what is not known yet waits.
        """
        waiting = [value]
        while waiting:
            value = waiting[-1]
            sources = moved_sources(value)
            unknown = [x for x in sources if x not in self.found]
            if unknown:
                waiting += unknown
                continue
            made = self.rows_moved(value, [self.found[x] for x in sources])
            self.found[value] = made or rows_in_order(value)
            waiting.pop()
        return self.found[value]

    def rows_moved(self, value: ir.Value, read: Sequence[Rows]) -> Rows | None:
        """What a node makes of the rows that it reads; None where they do not stay."""
        node = value.producer()
        if node is None or not read:
            return None
        first, shape = read[0], shape_of(value)
        if node.op_type in ("Slice", "Transpose"):
            axes, count = source_axes(node, value), first.places.shape[-1]
            row, width = len(shape) - 1, count * shape_of(first.source)[-1]
            if axes is None or axes[-1].of != (row,) or not axes[-1].is_all(width):
                return None
            part = moved(first.places, [*axes[:-1], whole(count, row)], len(shape))
            return Rows(first.source, part, first.joined)
        if node.op_type == "Concat":
            if any(rows.source is not first.source for rows in read):
                return None
            axis = node.attributes["axis"].as_int() % len(shape)
            parts = [rows.places for rows in read]
            return Rows(first.source, np.concatenate(parts, axis), True)
        width = shape_of(first.source)[-1]
        if not shape or width == 0 or shape[-1] % width:
            return None
        if prod(shape) != first.places.size * width:  # a Reshape that does not fit
            return None
        places = first.places.reshape(*shape[:-1], shape[-1] // width)
        return Rows(first.source, places, first.joined)


def rows_in_order(value: ir.Value) -> Rows:
    shape = shape_of(value)
    count = int(np.prod(shape[:-1], dtype=np.int64))
    return Rows(value, np.arange(count, dtype=np.int64).reshape(*shape[:-1], 1))


def moved_sources(value: ir.Value) -> list[ir.Value]:
    """What a value is made of by moving alone; nothing where it is not."""
    node = value.producer()
    if node is None or not is_move(node):
        return []
    inputs = node.inputs if node.op_type == "Concat" else node.inputs[:1]
    sources = [x for x in inputs if x is not None]
    known = [is_static(x) and shape_of(x) and x.const_value is None for x in sources]
    return sources if all(known) and len(sources) == len(inputs) else []


def is_move(node: ir.Node) -> bool:
    """Whether a node gives numbers that it reads; a Pad, if it adds none."""
    if is_tensor_op(node, {"Pad"}) and len(node.inputs) > 1:
        added = known_array(node.inputs[1])
        return added is not None and not added.any()
    return is_tensor_op(node, MOVES)


def continues(value: ir.Value) -> bool:
    """Whether only other moves read a value."""
    users = [use.node for use in value.uses()]
    moved = all(map(is_move, users))
    return bool(users) and moved and not value.is_graph_output()


def ends_only_in(source: ir.Value, end: ir.Value) -> bool:
    """Whether all that reads a value are moves, on the way to one other value."""
    waiting, seen = [source], set[ir.Value]()
    while waiting:
        value = waiting.pop()
        if value is end or value in seen:
            continue
        seen.add(value)
        if not continues(value):
            return False
        waiting += [x for use in value.uses() for x in use.node.outputs]
    return True


def is_row_wise(node: ir.Node) -> bool:
    """Whether a node normalizes each row by itself, with one result."""
    names = {"LayerNormalization", "RMSNormalization"}
    if not is_tensor_op(node, names) or len([v for v in node.outputs if v.name]) != 1:
        return False
    out = node.outputs[0]
    if not is_static(out) or node.inputs[0] is None:
        return False
    axis = node.attributes.get("axis")
    rank = len(shape_of(out))
    last = axis is None or axis.as_int() in (-1, rank - 1)
    rest = [v for v in node.inputs[1:] if v is not None]
    return last and all(is_static(v) and len(shape_of(v)) == 1 for v in rest)
