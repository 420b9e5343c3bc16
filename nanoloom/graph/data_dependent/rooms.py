"""Sizes without a bound that only data decide: how much room a run has for them.

A program takes such a size as the extent of one more input, which it does not read, and
gives what it found as one more output (nanoloom/api/rooms/ runs it again where
they do not fit):

    room     at least so many elements, of which a number counts
    size     exactly so many: it is a size like any other behind the node

A size is what operators are told (the end of a Range, a shape); a room is for what is
known when it is there (the trips of a loop that its condition ends).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nanoloom.errors import DataDependent
from nanoloom.interface.room_names import (
    BY_SIZES,
    EXACT,
    INPUT,
    OUTPUT,
    needed_outputs,
    rooms_among,
)

if TYPE_CHECKING:  # a program that is compiled already needs no ONNX
    import onnx_ir as ir

    from nanoloom.graph.data_dependent.decisions import Decisions
    from nanoloom.graph.data_dependent.node_builder import Maker

MOST = 1024  # values that a size is computed from
NEEDED = "nanoloom.needed"  # in the `meta` of a body: by room, not told of yet
# What a caller gives memory for has a size before it runs.
GROWS = "memory that grows with it is for calls, libraries and executables alone"


@dataclass(frozen=True)
class BoundRoom:
    """A room by its name, and how much there is."""

    room: str
    size: int


class Unbounded(DataDependent):
    """Sizes have no bound: the program wants rooms for them, by their names."""

    def __init__(
        self, rooms: Sequence[str], reason: str, inputs: tuple[str, ...], **place: str
    ) -> None:
        self.rooms = tuple(rooms)
        super().__init__(f"{reason}, and {GROWS}", inputs, **place)


def room_of(decided: Decisions, room: str) -> int | None:
    """How much there is; None for a program without."""
    root: ir.Graph | None = decided.root
    for value in () if root is None else root.inputs:
        if value.name == f"{INPUT} {room}" and value.shape is not None:
            return value.shape.numpy()[0]
    return None


def tell(decided: Decisions, graph: ir.Graph, room: str, needed: ir.Value) -> None:
    """Let the program give what was needed, int64 [1], once.

    What nodes of a body need is noted; the node around it hands it on (outward.py).
    """
    root: ir.Graph | None = decided.root
    assert root is not None
    name = f"{OUTPUT} {room}"
    if not is_outside(decided, graph):
        graph.meta.setdefault(NEEDED, {})[room] = needed
    elif all(x.name != name for x in root.outputs):
        needed.name = name
        root.outputs.append(needed)


def tell_of_unused(graph: ir.Graph) -> None:
    """Let the program give 0 for a room that none of its nodes wants.

    Sizes that are numbers can say what open ones leave to the data: the trips of a
    loop, for example.
    """
    import numpy as np
    import onnx_ir as ir

    rooms = rooms_among([x.name or "" for x in graph.inputs])
    told = {x.name for x in graph.outputs}
    for name in needed_outputs(rooms):
        if name in told:
            continue
        none, kind = ir.Tensor(np.zeros(1, np.int64)), ir.TensorType(ir.DataType.INT64)
        made = ir.Value(name=name, shape=none.shape, type=kind, const_value=none)
        graph.register_initializer(made)
        graph.outputs.append(made)


def is_outside(decided: Decisions, graph: ir.Graph) -> bool:
    """Whether nodes are in the model's own graph, where a room can be told of."""
    return decided.root is graph


def exact_rooms(
    m: Maker, names: Sequence[str], of: Sequence[ir.Value]
) -> list[BoundRoom]:
    """The sizes that a program is bound to; raises Unbounded where it has none.

    of: the values that they are computed from.
    """
    mark = BY_SIZES if all(map(is_of_shapes, of)) else EXACT
    rooms = [f"{mark}{name}" for name in names]
    found = [room_of(m.decided, room) for room in rooms]
    if None in found:
        why = "the data decide about a size that has no bound"
        hint = "give it one, as with Min, or export the model with a fixed size there"
        raise Unbounded(rooms, why, tuple(m.sources()), where=m.where, hint=hint)
    pairs = zip(rooms, found, strict=True)
    return [BoundRoom(room, size) for room, size in pairs if size is not None]


def is_of_shapes(value: ir.Value) -> bool:
    """Whether shapes and constants alone decide about a value."""
    seen: set[ir.Value] = set()
    waiting = [value]
    while waiting:
        x = waiting.pop()
        if x in seen or x.const_value is not None:
            continue
        seen.add(x)
        node = x.producer()
        if node is None or len(seen) > MOST:
            return False
        if node.op_type not in ("Constant", "Shape", "Size"):
            waiting += [given for given in node.inputs if given is not None]
    return True
