"""What lies where in a tensor that stacks others: traced through what only moves.

    Squeeze(Slice(x)), Gather(x, number)   a part of x
    Concat(Unsqueeze(a), Unsqueeze(b))     a stack of parts

A value is looked at for one part at a time.  Places say of each of its axes what the
part has of it: one index, or all, which is then an axis of the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from nanoloom.graph.editor import inverse, transpose_order
from nanoloom.graph.layout_effects import is_tensor_op
from nanoloom.graph.quantization import known_array
from nanoloom.graph.types import is_static, shape_of


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
    if node is None or not is_tensor_op(node, MOVES.keys()):
        return None
    if not all(x is None or is_static(x) for x in (*node.inputs, *node.outputs)):
        return None
    return MOVES[node.op_type](node, value, places)


def readers(value: ir.Value) -> Iterator[ir.Node]:
    """Who reads a value or a part of it, behind what only moves parts."""
    for node, _ in value.uses():
        moves = is_tensor_op(node, MOVES.keys() - {"Concat"})
        if not moves or any(x.is_graph_output() for x in node.outputs):
            yield node
            continue
        for out in node.outputs:
            yield from readers(out)


def source_of(node: ir.Node) -> ir.Value:
    value = node.inputs[0]
    assert value is not None
    return value


def axes_of(node: ir.Node, rank: int) -> list[int] | None:
    """Axes of Squeeze and Unsqueeze, of an attribute or an input; None: not known."""
    if "axes" in node.attributes:
        return [int(a) % rank for a in node.attributes["axes"].as_ints()]
    given = known_array(node.inputs[1]) if len(node.inputs) > 1 else None
    return None if given is None else [int(a) % rank for a in given.reshape(-1)]


def identity(node: ir.Node, value: ir.Value, places: Places) -> Step:
    return source_of(node), places


def transpose(node: ir.Node, value: ir.Value, places: Places) -> Step:
    order = transpose_order(value)
    assert order is not None
    return source_of(node), tuple(places[d] for d in inverse(order))


def squeeze(node: ir.Node, value: ir.Value, places: Places) -> Step:
    source = source_of(node)
    rank = len(shape_of(source))
    axes = axes_of(node, rank)
    if axes is None:
        axes = [d for d, size in enumerate(shape_of(source)) if size == 1]
    left = iter(places)
    return source, tuple(0 if d in axes else next(left) for d in range(rank))


def unsqueeze(node: ir.Node, value: ir.Value, places: Places) -> Step:
    axes = axes_of(node, len(places))
    if axes is None:
        return None
    for axis in axes:
        if isinstance(asked := places[axis], StackedAxis):
            return asked
    return source_of(node), tuple(p for d, p in enumerate(places) if d not in axes)


def gather(node: ir.Node, value: ir.Value, places: Places) -> Step:
    source, indices = source_of(node), known_array(node.inputs[1])
    if indices is None:
        return None
    attribute = node.attributes.get("axis")
    axis = 0 if attribute is None else attribute.as_int() % len(shape_of(source))
    chosen: list[int] = []
    for place in places[axis : axis + indices.ndim]:
        if isinstance(place, StackedAxis):
            return place
        chosen.append(place)
    number = int(indices[tuple(chosen)]) % shape_of(source)[axis]
    return source, (*places[:axis], number, *places[axis + indices.ndim :])


def sliced(node: ir.Node, value: ir.Value, places: Places) -> Step:
    source = source_of(node)
    given = [known_array(x) for x in node.inputs[1:]]
    if len(given) < 2 or any(
        x is not None and y is None for x, y in zip(node.inputs[1:], given, strict=True)
    ):
        return None
    starts, ends, axes, steps = (*given, None, None)[:4]
    if starts is None or ends is None:
        return None
    rank, count = len(places), len(starts)
    axes = range(count) if axes is None else axes.tolist()
    steps = [1] * count if steps is None else steps.tolist()
    found = list(places)
    for axis, *cut in zip(axes, starts.tolist(), ends.tolist(), steps, strict=True):
        indices = range(shape_of(source)[axis % rank])[slice(*cut)]
        place = places[axis % rank]
        if not isinstance(place, StackedAxis):
            found[axis % rank] = indices[place]
        elif indices != range(shape_of(source)[axis % rank]):
            return place
    return source, tuple(found)


def split(node: ir.Node, value: ir.Value, places: Places) -> Step:
    attribute = node.attributes.get("axis")
    axis = 0 if attribute is None else attribute.as_int() % len(places)
    place = places[axis]
    if isinstance(place, StackedAxis):
        return place
    before = node.outputs[: node.outputs.index(value)]
    start = sum(shape_of(x)[axis] for x in before)
    return source_of(node), (*places[:axis], start + place, *places[axis + 1 :])


def concat(node: ir.Node, value: ir.Value, places: Places) -> Step:
    axis = node.attributes["axis"].as_int() % len(places)
    place = places[axis]
    if isinstance(place, StackedAxis):
        return place
    inputs = [x for x in node.inputs if x is not None]
    ends = list(accumulate(shape_of(x)[axis] for x in inputs))
    which = next(i for i, end in enumerate(ends) if place < end)
    start = ends[which] - shape_of(inputs[which])[axis]
    return inputs[which], (*places[:axis], place - start, *places[axis + 1 :])


def reshape(node: ir.Node, value: ir.Value, places: Places) -> Step:
    """Where only axes in front change, which are chosen from."""
    source = source_of(node)
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


MOVES: dict[str, Callable[[ir.Node, ir.Value, Places], Step]] = {
    "Concat": concat,
    "Gather": gather,
    "Identity": identity,
    "Reshape": reshape,
    "Slice": sliced,
    "Split": split,
    "Squeeze": squeeze,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
}
