"""Pads that their only reader makes itself, a part at a time, in memory of its task.

    p = copy(x) in the middle of a padded tensor;  y = conv(p)
      ->  one kernel:  p[i, j] = x[i - 1, j - 1] inside, 0 outside;  y = conv(p)

What a kernel computes is written between its padding by that kernel
(insert_in_place.py).  Where that cannot be, because products read it without, or
because it is an input of the model, the pad would be a kernel that copies, and a
tensor.  It becomes a stage in front of what reads it: a generic whose body asks where
it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from nanoloom.kernels.fill_padding import fill_value
from nanoloom.kernels.group import Group, is_movable, is_view
from nanoloom.kernels.insert_in_place import (
    Insertion,
    chain_of,
    drops_ones,
    is_insertion,
    only_user,
)
from nanoloom.kernels.linalg_query import (
    Op,
    input_count,
    inputs,
    is_contraction,
    is_copy,
    is_generic,
    is_identity,
    map_dims,
    maps,
)
from nanoloom.kernels.mark_implicit_padding import has_implicit_padding
from nanoloom.kernels.nest import begin_of, source_of
from nanoloom.kernels.pad_op import Border, Read
from nanoloom.kernels.padding_consumers import can_absorb, shares, slides
from nanoloom.kernels.tiled_shapes import matched
from nanoloom.mlir import ir


def fuse_padding(
    groups: list[Group],
    weights: Sequence[ir.Value] = (),
    *,
    masks: bool = False,
) -> list[Group]:
    """The groups without those that only copy into a border which the reader can make,
    or leave out.

    In place: the readers' operands are the pads themselves.  weights: the arguments
    that are parameters, of which panels can be packed.  masks: whether vectors of
    pixels are loaded in part, so that rows may have a border.
    """
    owner = {op.operation: group for group in groups for op in group.ops}

    def absorbs(read: Read, border: Border) -> bool:
        around = owner.get(read[0].operation)
        if not border.is_turned and has_implicit_padding(read, around, border, weights):
            return True
        if not can_absorb(*read, around):
            return False
        along = border.lies_along or (masks and slides(*read))
        if along and shares(*read):
            return True
        return not border.is_turned and is_contraction(read[0])

    left: list[Group] = []
    for group in groups:
        found = [(read, border_of(group.ops[0], read)) for read in readers_of(group)]
        borders = [(r, b) for r, b in found if b is not None and absorbs(r, b)]
        if not borders or len(borders) < len(found):
            left.append(group)
            continue
        fuse_pad(borders, group.ops[0])
    return left


def fuse_pad(borders: Iterable[tuple[Read, Border]], copy: Op) -> None:
    """Let readers make borders themselves, in place of what a copy made."""
    for (reader, number), border in borders:
        before = reader.operation.operands[number]
        with ir.InsertionPoint(reader), copy.operation.location:
            reader.operation.operands[number] = border.with_rows().made()
        erase_unused(before)


def erase_unused(value: ir.Value) -> None:
    """What makes a value that nobody reads any more, and what only that reads."""
    owner = value.owner
    if isinstance(owner, ir.Block) or any(list(r.uses) for r in owner.results):
        return
    operands = list(owner.operands)
    owner.erase()
    for operand in operands:
        erase_unused(operand)


def readers_of(group: Group) -> list[Read]:
    """What reads the tensor that a group only copies into; none for others."""
    if len(group.ops) != 1 or not is_copy(group.ops[0]):
        return []
    insertion = insertion_of(group.ops[0])
    return [] if insertion is None else readers_of_part(insertion)


def readers_of_part(insertion: Op) -> list[Read]:
    """The generics that read a tensor of a single part; none if others do, too."""
    return readers_of_value(insertion) if len(chain_of(insertion) or ()) == 1 else []


def readers_of_value(insertion: Op) -> list[Read]:
    """The generics that read what an insertion makes; none if others do, too."""
    found: list[Read] = []
    values = [insertion.operation.results[0]]
    while values:
        for use in values.pop().uses:
            user, number = use.owner.opview, use.operand_number
            if is_view(user) and drops_ones(user):
                values.append(user.operation.results[0])
            elif is_generic(user) and number < input_count(user):
                found.append((user, number))
            else:
                return []
    return found


def insertion_of(copy: Op) -> Op | None:
    """The part that a copy writes, through shapes without extents of 1."""
    value = copy.operation.results[0]
    while (user := only_user(value)) is not None:
        if is_insertion(user) and user.operation.operands[0] == value:
            return user
        if not is_view(user) or not drops_ones(user):
            return None
        value = user.operation.results[0]
    return None


def border_of(copy: Op, read: Read) -> Border | None:
    """A copy's source and the border around it, as its reader has them."""
    insertion = insertion_of(copy)
    assert insertion is not None, "a group with a reader has one"
    value = inputs(copy)[0]
    reading, writing = maps(copy)
    dims = map_dims(reading)
    if not is_identity(writing) or None in dims or len(set(dims)) != len(dims):
        return None
    source, begin = source_of(value), begin_of(value)
    made = ir.RankedTensorType(copy.operation.results[0].type).shape
    border = border_around(insertion, read, source, list(made))
    if border is None:
        return None
    places = tuple(border.places[d] for d in dims if d is not None)
    return replace(border, begin=begin or (0,) * len(dims), places=places)


def border_around(
    insertion: Op,
    read: Read,
    source: ir.Value,
    made: list[int],
    number: ir.Value | None = None,
) -> Border | None:
    """What an insertion puts around a tensor, as a reader has both.

    source: what is inserted, or is copied for that.  made: the extents that are.
    number: what is around it, where only a run knows that.
    """
    owner = source.owner
    free = not isinstance(owner, ir.Block) and is_movable(owner.opview)
    around = fill_value([insertion]) if number is None else number
    if around is None or free:
        return None
    whole = ir.RankedTensorType(insertion.operation.results[0].type).shape
    shape = tuple(ir.RankedTensorType(inputs(read[0])[read[1]].type).shape)
    part = Insertion.of(insertion)
    kept = matched(shape, whole)
    found = matched(made, part.sizes)
    return Border(
        source,
        (0,) * len(made),
        tuple(kept.index(p) if p in kept else None for p in found),
        shape,
        tuple(part.offsets[d] for d in kept),
        tuple(part.sizes[d] for d in kept),
        around,
    )
