"""Padded reads are guarded reads: the padded tensor is in no memory of its own.

    p = x in the middle of copies of z;  y = f(p)
      ->  one kernel:  p[i, j] = x[i - 1, j - 1] inside, z outside;  y = f(p)

z is a constant, or a number that only a run knows.  What a kernel computes is written
between its padding by that kernel (insert_in_place.py).  Where that cannot be, because
others read it without, or because it is an input of the model, the padded tensor would
be one more, which a kernel copies.  It becomes a stage in front of what reads it: a
generic whose body asks where it is.  Its reader makes it in its loops, or reads what is
inside alone (nest/implicit_padding.py).  Windows along rows of pixels load them under
masks: what these read has no border in memory, whoever makes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType

from nanoloom.fusion.group import Group, is_view
from nanoloom.fusion.insert_in_place import (
    INSERT,
    is_insertion,
    only_user,
)
from nanoloom.fusion.pad_op import Border, Read, border_around
from nanoloom.ir.contraction import analyse, is_product
from nanoloom.ir.linalg_query import (
    Kind,
    Op,
    base,
    dims_of,
    extents,
    input_count,
    inputs,
    is_contraction,
    is_copy,
    is_generic,
    is_identity,
    iterators,
    kind,
    map_dims,
    maps,
)
from nanoloom.ir.loop_nest import alone
from nanoloom.ir.mlir import ir, made_by
from nanoloom.ir.regrouped_axes import drops_ones
from nanoloom.nest.footprint import footprint
from nanoloom.nest.granularity import JAMMED, MOST_WRITTEN
from nanoloom.nest.implicit_padding import may_be_implicit
from nanoloom.nest.index import Index

Owners = Mapping[ir.Operation, Group]
NO_GROUPS: Owners = MappingProxyType({})
MOST_ROWS = 8  # that one row of results reads: they are padded for each task


def guard_reads(
    groups: list[Group],
    weights: Sequence[ir.Value] = (),
    *,
    masks: bool = False,
) -> list[Group]:
    """The groups without those that only pad what all readers can read guarded.

    In place: the readers' operands are the pads themselves.  weights: the arguments
    that are parameters, of which panels can be packed.  masks: whether vectors of
    pixels are loaded in part, so that rows may have a border.
    """
    owner = {op.operation: group for group in groups for op in group.ops}

    def takes(read: Read, border: Border | None) -> bool:
        group = owner.get(read[0].operation)
        if border is None or group is None or not computes_pads(group):
            return False
        if is_backwards(*read):
            return False
        return pays(read, border, weights, masks=masks)

    for group in groups:
        found = padded_by(group)
        if found and all(takes(*each) for each in found):
            for read, border in found:
                assert border is not None, "it is taken"
                guard(read, border, owner)
    return [group for group in groups if group.ops]


def guard(read: Read, border: Border, owner: Owners = NO_GROUPS) -> Op:
    """Let a reader make a pad itself, in place of what it reads; gives the pad.

    owner: the groups, which lose what nobody reads any more.
    """
    reader, number = read
    before = reader.operation.operands[number]
    with ir.InsertionPoint(reader), reader.operation.location:
        made = border.with_rows().made()
    reader.operation.operands[number] = made
    erase_unused(before, owner)
    return made.owner.opview  # type: ignore[union-attr] - made just now


def erase_unused(value: ir.Value, owner: Owners) -> None:
    """What makes a value that nobody reads, and what only that reads."""
    made = value.owner
    if isinstance(made, ir.Block) or any(list(r.uses) for r in made.results):
        return
    if made in owner:
        owner[made].ops.remove(made.opview)
    operands = list(made.operands)
    made.erase()
    for operand in operands:
        erase_unused(operand, owner)


# ---- what is padded ------------------------------------------------------------------


def padded_by(group: Group) -> list[tuple[Read, Border | None]]:
    """Who reads a tensor that a group only pads, and what that pads; None for what has
    to be copied.  Nothing of other groups."""
    op, *others = group.ops or [None]
    if op is None or others:
        return []
    if op.operation.name == INSERT:
        value = op.operation.operands[0]
        return [(read, border_around(op, read, value)) for read in readers_of(op)]
    insertion = insertion_of(op) if is_copy(op) else None
    if insertion is None:
        return []
    reading, writing = maps(op)
    dims, copied = map_dims(reading), op.operation.results[0]
    plain = is_identity(writing) and None not in dims and len({*dims}) == len(dims)
    value = inputs(op)[0]
    return [
        (read, border_around(insertion, read, copied, value, dims) if plain else None)
        for read in readers_of(insertion)
    ]


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


def readers_of(insertion: Op) -> list[Read]:
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


def needs_no_border(insertion: Op) -> bool:
    """Whether all that read a padded tensor load its rows under masks, whose few taps
    are written out: what makes it writes it as it is."""
    value, found = insertion.operation.operands[0], readers_of(insertion)

    def loads(read: Read) -> bool:
        border = border_around(insertion, read, value)
        windows = is_along_rows(*read) and has_few_taps(read[0])
        return border is not None and windows and pays(read, border, (), masks=True)

    return bool(found) and all(map(loads, found))


def is_made_by_windows(insertion: Op) -> bool:
    """Whether what a padded tensor has inside is a reduction's, or made of one's: with
    known sizes that may be in the tasks of its reader, which has windows too."""
    maker = made_by(base(insertion.operation.operands[0]))
    while maker is not None and kind(maker.opview) is Kind.ELEMENTWISE:
        first = inputs(maker.opview)[:1]
        maker = made_by(base(first[0])) if first else None
    return maker is not None and kind(maker.opview) is Kind.REDUCTION


def is_along_rows(reader: Op, number: int) -> bool:
    """Whether the taps of windows, too, are neighbours in a row of pixels."""
    row = alone(reader).reads[number].indices[-1:]
    return bool(row) and len(row[0].axes) > 1 and slides(reader, number)


def has_few_taps(reader: Op) -> bool:
    """Whether the steps of a reader's sums are written out for some pixels at once."""
    pairs = zip(extents(reader), iterators(reader), strict=True)
    return prod(n for n, kind in pairs if kind == "reduction") <= MOST_WRITTEN // JAMMED


# ---- who may read it guarded ---------------------------------------------------------


def computes_pads(group: Group) -> bool:
    """Whether a kernel has loops that a pad can be computed in: around one product."""
    products = [op for op in group.ops if is_generic(op) and is_product(op)]
    return group.root is not Kind.OPAQUE and len(products) <= 1


def pays(
    read: Read, border: Border, weights: Sequence[ir.Value], *, masks: bool
) -> bool:
    """Whether padded reads in a reader's loops are no more work than a copy.

    Of products those of windows, whose tasks have rows enough, and what is left out of
    their sums.  Of others those of parts of rows, each a few times: as they lie, or
    under masks.
    """
    along = border.lies_along or (masks and slides(*read))
    along = along and shares(*read)
    if not is_contraction(read[0]):
        return along and reads_few_rows(*read)
    if None in map_dims(maps(read[0])[read[1]]):
        return along or not border.is_turned
    return not border.is_turned and is_left_out(read, border, weights)


def is_left_out(read: Read, border: Border, weights: Sequence[ir.Value]) -> bool:
    """Whether a product's sums can have fewer terms in place of a border."""
    reader, operand = read
    shape = analyse(reader)
    if shape is None or any(border.begin) or border.is_cropped:
        return False
    if isinstance(border.number, ir.Value):
        return False
    known = base(inputs(reader)[shape.right]) in weights
    ends = zip(border.low, border.behind, strict=True)
    around = [low + high > 0 for low, high in ends]
    return may_be_implicit(alone(reader), shape, operand, around, known=known)


def reads_few_rows(reader: Op, number: int) -> bool:
    """Whether a row of results needs no more of a padded image than a few rows."""
    stage = alone(reader)
    *rows, _, _ = (Index(), Index(), *stage.reads[number].indices)
    sizes = {a.name: a.extent if a.is_reduction else 1 for a in stage.axes}
    reaches = [footprint(index, sizes, MOST_ROWS + 1) for index in rows]
    return all(isinstance(n, int) and n <= MOST_ROWS for n in reaches)


def is_backwards(reader: Op, number: int) -> bool:
    """Whether a reader's loops go backwards in a tensor: what a step of tiles reads of
    it is not between what its first and its last points read."""
    terms = (x for index in alone(reader).reads[number].indices for x in index.terms)
    return any(factor < 0 for _, factor in terms)


def slides(reader: Op, number: int) -> bool:
    """Whether windows go along rows of pixels, as vectors do, by one or two."""
    stage = alone(reader)
    written = stage.writes[0].plain
    if not written or written[-1] is None:
        return False
    read, along = stage.reads[number], written[-1]
    return along in read.axes and read.follows_on(along, 2)


def shares(reader: Op, number: int) -> bool:
    """Whether tasks of a reader have parts of what it reads: not its rows whole."""
    sizes, kinds = extents(reader), iterators(reader)
    *outer, _ = maps(reader)[number].results
    moving = {d for expr in outer for d in dims_of(expr)}
    return any(kinds[d] == "parallel" and sizes[d] > 1 for d in moving)
