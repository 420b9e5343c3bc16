"""Parts of operands in rows side by side: what "nanoloom.copy_operand" does.

    f(w[k, j0 + j])  ->  part[k, j] = w[k, j0 + j]; f(part[k, j])

"nanoloom.hoist" has it copied in front of a loop around the stage.

What a task reads of an operand again and again may lie in many pages, and in few places
of the first-level cache.  It is copied in front of the stage, once for all its loops.
"""

from __future__ import annotations

from nanoloom.errors import Error
from nanoloom.ir.linalg_query import Op, body, input_count
from nanoloom.ir.mlir import ir, named
from nanoloom.linalg.builder.pointwise import pointwise
from nanoloom.nest.extent import Lanes
from nanoloom.vector.dialect import LOOP
from nanoloom.vector.extending_casts import widening_of
from nanoloom.vector.nanokernel.tile.task import is_within
from nanoloom.vector.pad import (
    Padding,
    pad_results,
    padded_copy,
    require_copies,
    room,
)
from nanoloom.vector.vector_copies import along_rows, copy_rows
from nanoloom.vector.vectorize import note, noted, require_axis, require_lanes

COPIED, HOISTED = "nanoloom.copied", "nanoloom.hoisted"
WIDENED = "nanoloom.widened"
# What says where a part begins and how large it is: without effects.
PURE = ("memref.subview", "memref.dim", "memref.cast", "affine.", "arith.")


def copy_operand(op: Op, operand: int, lanes: int, scalable: int, wide: int) -> None:
    """Note that a stage reads a copy of what it reads of an operand.

    wide: of the type that its body extends the numbers to.
    """
    require_axis(op, 0)
    require_lanes(lanes, scalable)
    count = input_count(op)
    if not 0 <= operand < count:
        raise Error(f"operand = {operand}: the stage reads {count} operands, from 0 on")
    if not isinstance(op.operation.operands[operand].type, ir.RankedTensorType):
        raise Error(f"operand {operand} is a number: there is nothing to copy")
    found = {**copy_for(op), operand: Lanes(lanes, bool(scalable))}
    words = ((number, x.count, x.scalable) for number, x in sorted(found.items()))
    note(op, COPIED, *(word for each in words for word in each))
    if wide:
        if widening_of(body(op).arguments[operand]) is None:
            raise Error(f"operand {operand} is multiplied as it is: nothing is widened")
        note(op, WIDENED, *sorted({*noted(op, WIDENED), operand}))


def copy_for(op: Op) -> dict[int, Lanes]:
    """The operands that are copied, and in which vectors."""
    words = iter(noted(op, COPIED))
    found = zip(words, words, words, strict=True)
    return {number: Lanes(lanes, bool(scalable)) for number, lanes, scalable in found}


def hoist_copy(op: Op, operand: int, loop: str) -> None:
    """Note in front of which loop a copy is made, by the loop's name."""
    if operand not in copy_for(op):
        raise Error(f"operand {operand} is not copied: nothing is to be hoisted")
    fronts = {**fronts_of(op), operand: loop}
    words = {str(number): ir.StringAttr.get(name) for number, name in fronts.items()}
    op.operation.attributes[HOISTED] = ir.DictAttr.get(words)


def fronts_of(op: Op) -> dict[int, str]:
    """The loops in front of which operands are copied."""
    attributes = op.operation.attributes
    if HOISTED not in attributes:
        return {}
    return {int(each.name): each.attr.value for each in attributes[HOISTED]}  # type: ignore[attr-defined]


def make_copies(module: ir.Module) -> None:
    """Allocate and copy what is noted, on buffers."""
    for op in named(module, "linalg.generic"):
        fronts, padding, copied = fronts_of(op), Padding.of(op), copy_for(op)
        if padding:
            require_copies(op, tuple(copied), padding)
            if noted(op, WIDENED):
                raise Error("a copy that is filled up has numbers as they are")
        for number, lanes in copied.items():
            part, front = op.operation.operands[number], op.operation
            if number in fronts:
                front = loop_around(op, fronts[number])
                move_out(part, front, fronts[number])
            with ir.InsertionPoint(front), op.operation.location:
                if number in noted(op, WIDENED):
                    made = widened_copy(op, number, part, lanes)
                elif padding:
                    made = padded_copy(op, number, part, padding, lanes)
                else:
                    made = copy_of(part, lanes)
                op.operation.operands[number] = made
        if padding:
            pad_results(op, padding)


def loop_around(op: ir.OpView, name: str) -> ir.Operation:
    """The loop of this name that an operation is in; Error if there is none."""
    around = op.operation.parent
    while around is not None:
        attributes = around.operation.attributes
        if LOOP in attributes and attributes[LOOP] == ir.StringAttr.get(name):
            return around.operation
        around = around.operation.parent
    raise Error(
        f"no loop {name} is around the stage whose copy it is to be in front of"
    )


def move_out(value: ir.Value, loop: ir.Operation, name: str) -> None:
    """What a value is made of to the front of a loop; Error if that changes in it."""
    owner = value.owner
    if not is_within(value, loop):
        return
    if isinstance(owner, ir.Block) or not owner.name.startswith(PURE):
        raise Error(f"a copied part changes with the loop {name}: it stays inside")
    for operand in owner.operands:
        move_out(operand, loop, name)
    owner.operation.move_before(loop)


def widened_copy(op: Op, number: int, part: ir.Value, lanes: Lanes) -> ir.Value:
    """A copy of wider numbers, which the body does not widen any more."""
    argument = body(op).arguments[number]
    user = widening_of(argument)
    assert user is not None, "copy_operand lets no other pass"
    name, wide = user.name, user.results[0].type
    user.results[0].replace_all_uses_with(argument)
    user.erase()
    argument.set_type(wide)

    def extended(value: ir.Value) -> ir.Value:
        return ir.Operation.create(name, [wide], [value]).results[0]

    made = room(part, {}, wide)
    words = along_rows(ir.MemRefType(made.type).rank, lanes)
    return pointwise([part], made, extended, words=words)


def copy_of(buffer: ir.Value, lanes: Lanes) -> ir.Value:
    """The same numbers, a row behind the other."""
    made = room(buffer, {})
    copy_rows(buffer, made, lanes)
    return made
