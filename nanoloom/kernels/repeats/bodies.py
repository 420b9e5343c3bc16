"""What a loop's body reads and leaves in each trip.

    for t: x[t] is read, h is carried, y[t] is written

A block that lies in one piece of a tensor, at a place that moves by the same distance
each trip, is a tensor of its own to the body.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from nanoloom.ir.linalg_query import Op, element_bytes
from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.loops import FLAG, LIMIT, TRIPS
from nanoloom.linalg.stage import Moving

EXTRACT, INSERT = "tensor.extract_slice", "tensor.insert_slice"
SETTLED = "bufferization.materialize_in_destination"


@dataclass
class Body:
    """A loop's body, taken apart.

    reads: what slices of tensors outside of it give, and where they lie; the number is
    left open.  outputs: what it computes for the carried values, by their numbers.
    fixed: carried values that never change.  left: operations that say no more.
    limit, flag: carried values that end it (linalg/builder/loops.py).
    """

    trips: int
    counter: ir.Value
    carried: list[ir.Value]
    reads: dict[ir.Value, tuple[ir.Value, Moving]] = field(
        default_factory=dict[ir.Value, tuple[ir.Value, Moving]]
    )
    outputs: list[tuple[ir.Value, Moving]] = field(
        default_factory=list[tuple[ir.Value, Moving]]
    )
    states: set[int] = field(default_factory=set[int])
    fixed: set[int] = field(default_factory=set[int])
    left: set[ir.Operation] = field(default_factory=set[ir.Operation])
    limit: int | None = None
    flag: int | None = None


def take_apart(loop: Op) -> Body | None:
    """A loop's body; None for one that is no such recurrence, or has unknown trips."""
    block = block_of(loop)
    counter, *carried = block.arguments
    if loop.operation.name == "scf.while":
        body = begun_while(loop, counter, list(carried))
    else:
        bounds = [constant_of(value) for value in list(loop.operation.operands)[:3]]
        if bounds[0] != 0 or bounds[2] != 1 or bounds[1] is None:
            return None
        body = Body(bounds[1], counter, list(carried))
    *operations, end = block.operations
    body.left.add(end.operation)
    left = list(end.operation.operands)[-len(carried) :] if carried else []
    for number, value in enumerate(left):
        if not yield_results(body, number, value):
            return None
    for op in operations:
        if op.operation.name == EXTRACT and op.operation not in body.left:
            read_outside(body, loop, op)
    known = all(
        use.owner.operation in body.left or stands_for_place(body, use.owner.opview)
        for use in counter.uses
    )
    return body if known else None


def block_of(loop: Op) -> ir.Block:
    """What an scf.for or scf.while does in each trip."""
    return list(loop.operation.regions)[-1].blocks[0]


def begun_while(loop: Op, counter: ir.Value, carried: list[ir.Value]) -> Body:
    """An scf.while's body (linalg/control/until.py), of which the end is known."""
    attributes = loop.operation.attributes
    limit, flag = (
        attributes[name].value if name in attributes else None
        for name in (LIMIT, FLAG)  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
    )
    trips = attributes[TRIPS].value  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
    body = Body(trips, counter, carried, limit=limit, flag=flag)
    after = list(block_of(loop).operations)[-1].operation.operands[0]
    body.left.add(after.owner)  # type: ignore[arg-type] - an operation: i + 1
    return body


def yield_results(body: Body, number: int, value: ir.Value) -> bool:
    """Note what a trip leaves in a carried value; False for what has no such form."""
    old = body.carried[number]
    if value == old:
        body.fixed.add(number)
        return True
    op = value.owner
    if isinstance(op, ir.Block):
        return False
    if op.name == SETTLED and op.operands[1] == old:
        body.left.add(op)
        body.states.add(number)
        body.outputs.append((op.operands[0], Moving(number, is_state=True)))
        return True
    return write_parts(body, number, value)


def write_parts(body: Body, number: int, value: ir.Value) -> bool:
    """Note the parts of a carried tensor that a trip writes, if nothing reads it."""
    old = body.carried[number]
    while value != old:
        op = value.owner
        if isinstance(op, ir.Block) or op.name != INSERT:
            return False
        if len(list(value.uses)) != 1 or len(list(op.operands)) != 3:
            return False
        moving = place_of(body, op.opview, value.type, op.operands[2])
        if moving is None:
            return False
        body.left.add(op)
        place = Moving(number, moving.offset, moving.stride)
        body.outputs.append((op.operands[0], place))
        value = op.operands[1]
    return len(list(old.uses)) == 1


def read_outside(body: Body, loop: Op, op: Op) -> None:
    """Note a slice of a tensor from outside the loop, if its place moves evenly."""
    source = op.operation.operands[0]
    if len(list(op.operation.operands)) != 2 or is_within(source, loop):
        return
    moving = place_of(body, op, source.type, op.operation.operands[1])
    if moving is not None:
        body.left.add(op.operation)
        body.reads[op.operation.results[0]] = source, moving


def is_within(value: ir.Value, loop: Op) -> bool:
    """Whether a value is made by a loop's body, or carried in it."""
    owner = value.owner
    parent = owner.owner if isinstance(owner, ir.Block) else owner.parent
    return parent is not None and parent.operation == loop.operation


def place_of(body: Body, op: Op, kind: ir.Type, place: ir.Value) -> Moving | None:
    """Where a slice with one offset of run time lies; None if not in one piece."""
    line = line_of(body, place)
    shape = ir.RankedTensorType(kind).shape
    sizes, steps, offsets = (
        list(op.operation.attributes[f"static_{word}"])  # type: ignore[call-overload] - MLIR's stubs know no kinds of attributes
        for word in ("sizes", "strides", "offsets")
    )
    if line is None or set(steps) > {1} or not is_one_piece(sizes, shape):
        return None
    width = [prod(shape[d + 1 :]) * element_bytes(kind) for d in range(len(shape))]
    dynamic = ir.ShapedType.get_dynamic_size()
    moving = offsets.index(dynamic)
    fixed = sum(o * w for o, w in zip(offsets, width, strict=True) if o != dynamic)
    first, each = line
    return Moving(0, fixed + first * width[moving], each * width[moving])


def is_one_piece(sizes: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether the elements of a block lie behind each other in a tensor."""
    rest = [d for d, size in enumerate(sizes) if size != 1][:1] or [len(shape)]
    return all(sizes[d] == shape[d] for d in range(rest[0] + 1, len(shape)))


def line_of(body: Body, place: ir.Value) -> tuple[int, int] | None:
    """The place in the first trip and how far it moves: of t, or of a number - t."""
    if place == body.counter:
        return 0, 1
    op = place.owner
    if isinstance(op, ir.Block) or op.name != "arith.subi":
        return None
    first = constant_of(op.operands[0])
    return None if first is None or op.operands[1] != body.counter else (first, -1)


def stands_for_place(body: Body, op: Op) -> bool:
    """Whether an operation only says where slices lie; it is left out then."""
    if op.operation.name != "arith.subi":
        return False
    users = {use.owner.operation for use in op.operation.results[0].uses}
    if users <= body.left:
        body.left.add(op.operation)
    return users <= body.left


def constant_of(value: ir.Value) -> int | None:
    """The number that an index is, None if it is not known."""
    op = value.owner
    if isinstance(op, ir.Block) or op.name != "arith.constant":
        return None
    return int(op.attributes["value"].value)  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
