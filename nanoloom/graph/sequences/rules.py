"""What each operator of sequences and optionals becomes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from nanoloom.errors import DataDependent
from nanoloom.graph.sequences.change import Change, elements_of, note
from nanoloom.graph.splice import discard, inline_graph, local_outputs, substitute
from nanoloom.graph.types import integer_sources, is_static, shape_of
from nanoloom.graph.unique_names import Names, rename

ABSENT = "nanoloom.absent"  # of an optional that holds nothing


def resolve(graph: ir.Graph, node: ir.Node, names: Names) -> bool:
    """Whether a node is one of sequences or optionals, which is gone then."""
    rule = RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    if rule is None or (rule is passed and elements_of(node.inputs[0]) is None):
        return False
    rule(Change(graph, node, names))
    return True


def construct(c: Change) -> None:
    c.give([x for x in c.node.inputs if x is not None])


def split(c: Change) -> None:
    """One tensor for each size of `split`; without it, one for each place."""
    x = c.node.inputs[0]
    if x is None or not is_static(x):
        raise DataDependent(
            "the shape of its input is not known", integer_sources([x]), where=c.where
        )
    shape, axis = shape_of(x), c.int("axis", 0)
    if not -len(shape) <= axis < len(shape):
        raise c.invalid(f"axis {axis} of {len(shape)} dimensions")
    extent, sizes = shape[axis], c.known(1, "what it splits into")
    if sizes is None:
        parts = [1] * extent
    elif sizes.ndim == 0:
        each = max(int(sizes), 1)
        parts = [min(each, extent - first) for first in range(0, extent, each)]
    else:
        parts = [int(n) for n in sizes]
    if sum(parts) != extent or min(parts, default=0) < 0:
        raise c.invalid(f"it splits {extent} places into {parts}")
    keeps = sizes is not None or bool(c.int("keepdims", 1))
    c.give(c.split(x, parts, axis, keeps=keeps))


def insert(c: Change) -> None:
    values, added = list(c.elements()), c.input(1)
    assert added is not None  # the model was checked
    values.insert(c.place(2, len(values), len(values), end=1), added)
    c.give(values)


def erase(c: Change) -> None:
    values = list(c.elements())
    if not values:
        raise c.invalid("its sequence is empty, so there is nothing to erase")
    del values[c.place(1, len(values), len(values) - 1)]
    c.give(values)


def at(c: Change) -> None:
    place = c.input(1)
    assert place is not None  # the model was checked
    if (stacked := c.stacked()) is not None:
        c.become(c.op("Gather", [stacked, place], axis=0)[0])
        return
    values = c.elements()
    if place.const_value is not None or not values:
        if not values:
            raise c.invalid("its sequence is empty")
        c.become(values[c.place(1, len(values), 0)])
        return
    if len({shape_of(x) if is_static(x) else None for x in values}) != 1:
        raise DataDependent(
            "its place is not known while compiling, and the tensors of its sequence"
            " have several shapes",
            integer_sources([place]),
            where=c.where,
            hint="make it a constant of the model",
        )
    c.become(c.op("Gather", [c.joined(values, 0, new=True), place], axis=0)[0])


def concat(c: Change) -> None:
    if (stacked := c.stacked()) is not None:
        c.become(in_one(c, stacked))
        return
    values = c.elements()
    if not values:
        raise c.invalid("its sequence is empty, so there is nothing to join")
    c.become(c.joined(values, c.int("axis", 0), new=bool(c.int("new_axis", 0))))


def in_one(c: Change, stacked: ir.Value) -> ir.Value:
    """Tensors that lie behind each other, joined along an axis."""
    new, axis = bool(c.int("new_axis", 0)), c.int("axis", 0)
    rank = len(shape_of(stacked))
    axis += rank - (0 if new else 1) if axis < 0 else 0
    order = [*range(1, rank)]
    order.insert(axis, 0)
    perm = [ir.AttrInt64s("perm", order)]
    (turned,) = c.put("Transpose", [stacked], perm, 1)
    if new:
        return turned
    sizes = [*shape_of(stacked)[1:]]
    sizes[axis] = -1
    return c.op("Reshape", [turned, c.constant(sizes)])[0]


def length(c: Change) -> None:
    if (stacked := c.stacked()) is None:
        c.become(c.constant(len(c.elements())))
        return
    (shape,) = c.op("Shape", [stacked])
    c.become(c.op("Gather", [shape, c.constant(0)], axis=0)[0])


def mapped(c: Change) -> None:
    """SequenceMap: the body once for each place, other sequences beside it."""
    first = c.elements()
    others = [first, *(elements_of(x) for x in c.node.inputs[1:])]
    if any(x is not None and len(x) != len(first) for x in others):
        raise c.invalid("its sequences have several lengths")
    body = c.node.attributes["body"].as_graph()
    local_outputs(body, c.names)
    made: list[list[ir.Value]] = [[] for _ in c.node.outputs]
    for i in range(len(first)):
        one = body.clone(allow_outer_scope_values=True)
        rename(one, c.names, f"{c.node.name}/{i}/")
        given = [
            own[i] if own is not None else x
            for x, own in zip(c.node.inputs, others, strict=True)
        ]
        last = list(one)[-1]
        found = inline_graph(one, given, c.graph, c.last)
        for row, value in zip(made, found, strict=True):
            row.append(value)
        c.last = last
    lists = [c.op("SequenceConstruct", row)[0] for row in made]  # behind the bodies
    for old, new in zip(c.node.outputs, lists, strict=True):
        new.type = old.type
    substitute(c.graph, c.node, lists)


def optional(c: Change) -> None:
    """What it is given; without that, a value that says there is nothing."""
    given, old = c.input(0), c.node.outputs[0]
    if given is None:
        note(old, ABSENT, True)
        discard(c.graph, c.node)
    elif (values := elements_of(given)) is not None:
        c.give(values)
    else:
        old.type = given.type
        c.become(given)


def element(c: Change) -> None:
    given = c.input(0)
    if given is None or ABSENT in given.meta:
        raise c.invalid("its optional holds nothing")
    if (values := elements_of(given)) is not None:
        c.give(values)
    else:
        c.become(given)


def has(c: Change) -> None:
    given = c.input(0)
    c.become(c.constant(given is not None and ABSENT not in given.meta, np.bool_))


def passed(c: Change) -> None:
    """Identity of a sequence."""
    c.give(c.elements())


RULES: dict[str, Callable[[Change], None]] = {
    "ConcatFromSequence": concat,
    "Identity": passed,
    "Optional": optional,
    "OptionalGetElement": element,
    "OptionalHasElement": has,
    "SequenceAt": at,
    "SequenceConstruct": construct,
    "SequenceEmpty": construct,
    "SequenceErase": erase,
    "SequenceInsert": insert,
    "SequenceLength": length,
    "SequenceMap": mapped,
    "SplitToSequence": split,
}
