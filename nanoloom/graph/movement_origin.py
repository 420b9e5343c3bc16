"""What lies where in a tensor that stacks others: traced through what only moves.

    Squeeze(Slice(x)), Gather(x, number)   a part of x
    Concat(Unsqueeze(a), Unsqueeze(b))     a stack of parts

A value is looked at for one part at a time.  Places say of each of its axes what the
part has of it: one index, or all, which is then an axis of the stack.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.movement import MOVES, Axes, source_axes
from nanoloom.graph.types import is_static, shape_of

KINDS = frozenset({"Concat", "Reshape", *MOVES})


@dataclass(frozen=True)
class StackedAxis:
    """All of an axis of the stack."""

    axis: int


Places: TypeAlias = tuple[int | StackedAxis, ...]
# What a node reads for a part of its output; an axis that must be chosen from for that;
# None where it does more than to move.
Step: TypeAlias = tuple[ir.Value, Places] | StackedAxis | None


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a stack.  index: of each axis of the stack, None for all of it.

    value: which has it, as `places` say.
    """

    index: tuple[int | None, ...]
    value: ir.Value
    places: Places


def parts_of(stack: ir.Value, growing: int) -> Iterator[Part]:
    """The parts that a value of static shape is made of, each as far as it only moves.

    growing: an axis that all parts have, and along which what is joined stays so.
    """
    shape = shape_of(stack)
    waiting: list[Places] = [tuple(map(StackedAxis, range(len(shape))))]
    while waiting:
        places = waiting.pop()
        value, at, asked = origin(stack, places)
        if asked is None or asked.axis == growing:
            index = tuple(None if isinstance(p, StackedAxis) else p for p in places)
            yield Part(index, value, at)
            continue
        for number in reversed(range(shape[asked.axis])):
            waiting.append(tuple(number if p == asked else p for p in places))


def origin(
    value: ir.Value, places: Places
) -> tuple[ir.Value, Places, StackedAxis | None]:
    """What a part of a value is a copy of; and what must be chosen to go on."""
    while True:
        step = read_by(value, places)
        if not isinstance(step, tuple):
            return value, places, step
        value, places = step


def read_by(value: ir.Value, places: Places) -> Step:
    """What the node that makes a value reads for a part of it."""
    node = value.producer()
    if node is None or not is_tensor_op(node, KINDS):
        return None
    if not all(x is None or is_static(x) for x in (*node.inputs, *node.outputs)):
        return None
    if node.op_type == "Concat":
        return concat(node, places)
    (source, *_), axes = node.inputs, source_axes(node, value)
    assert source is not None, "what moves has something to move"
    if node.op_type == "Reshape":
        return reshape(source, value, places)
    return None if axes is None else chosen(axes, source, places)


def readers(value: ir.Value) -> Iterator[ir.Node]:
    """Who reads a value or a part of it, behind what only moves parts."""
    for node, _ in value.uses():
        moves = is_tensor_op(node, KINDS - {"Concat"})
        if not moves or any(x.is_graph_output() for x in node.outputs):
            yield node
            continue
        for out in node.outputs:
            yield from readers(out)


def chosen(axes: Axes, source: ir.Value, places: Places) -> Step:
    """A part of a source, whose axes go by those of which the places are."""
    read = {d for axis in axes for d in axis.of}
    for d, place in enumerate(places):
        if d not in read and isinstance(place, StackedAxis):
            return place
    found: list[int | StackedAxis] = []
    for axis, size in zip(axes, shape_of(source), strict=True):
        at = [places[d] for d in axis.of]
        numbers = tuple(p for p in at if not isinstance(p, StackedAxis))
        asked = next((p for p in at if isinstance(p, StackedAxis)), None)
        if asked is not None and not axis.is_all(size):
            return asked
        found.append(int(axis.indices[numbers]) if asked is None else asked)
    return source, tuple(found)


def concat(node: ir.Node, places: Places) -> Step:
    axis = node.attributes["axis"].as_int() % len(places)
    place = places[axis]
    if isinstance(place, StackedAxis):
        return place
    inputs = [x for x in node.inputs if x is not None]
    ends = list(accumulate(shape_of(x)[axis] for x in inputs))
    which = next(i for i, end in enumerate(ends) if place < end)
    start = ends[which] - shape_of(inputs[which])[axis]
    return inputs[which], (*places[:axis], place - start, *places[axis + 1 :])


def reshape(source: ir.Value, value: ir.Value, places: Places) -> Step:
    """Where only axes in front change, which are chosen from."""
    made, given = shape_of(value), shape_of(source)
    alike = 0
    for new, old in zip(reversed(made), reversed(given), strict=False):
        if new != old:
            break
        alike += 1
    front = len(made) - alike
    chosen: list[int] = []
    for place in places[:front]:
        if isinstance(place, StackedAxis):
            return place
        chosen.append(place)
    number = int(np.ravel_multi_index(chosen, made[:front])) if chosen else 0
    shape = given[: len(given) - alike]
    before = map(int, np.unravel_index(number, shape)) if shape else ()
    return source, (*before, *places[front:])
