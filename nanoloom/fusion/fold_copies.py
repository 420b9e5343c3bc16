"""Transposes, broadcasts and slices become the way their reader indexes.

y = copy(x, m1);  z = generic(y, m2)   ->   z = generic(x, m1 after m2)
x = generic(...); y = transpose(x)     ->   y = generic(...), written transposed

A product that reads numbers of a line each, again for every panel of its columns, may
take longer than a copy: its caller says which do (layouts/cost.py).
"""

from __future__ import annotations

from collections.abc import Callable

from nanoloom.ir.contraction import analyse
from nanoloom.ir.linalg_query import (
    Op,
    all_dims,
    base,
    input_count,
    inputs,
    is_contraction,
    is_copy,
    is_fill,
    is_generic,
    map_dims,
    maps,
    outputs,
)
from nanoloom.ir.loop_nest import alone
from nanoloom.ir.make_generic import compose, remade, set_maps
from nanoloom.ir.mlir import ir, named, operations, tensor
from nanoloom.linalg.builder.pointwise import itself, pointwise
from nanoloom.nest.contraction import lanes_along_k

Stays = Callable[[Op, int], bool]  # of a reader, and the number of an operand


def none_stays(reader: Op, number: int) -> bool:
    """Of no copy it is known that its reader is faster with it."""
    del reader, number
    return False


def fold_copies(module: ir.Module, stays: Stays = none_stays) -> None:
    """Fold every copy that a neighbour can do while it reads or writes.

    stays: whether a reader should read an operand that is turned for it.
    """
    changed = True
    while changed:
        changed = False
        for op in operations(module, is_copy):
            if at_top(op) and (fold_into_readers(op, stays) or fold_into_writer(op)):
                changed = True


def at_top(op: Op) -> bool:
    parent = op.operation.parent
    return parent is not None and parent.name == "func.func"


def fold_into_readers(op: Op, stays: Stays) -> bool:
    """Let the readers of a copy read its source instead; true if all of them can."""
    result = op.operation.results[0]
    source = inputs(op)[0]
    reading = maps(op)[0]
    writing = maps(op)[1]
    if map_dims(writing) != list(range(writing.n_dims)):
        return False
    folded = False
    for use in list(result.uses):
        reader = use.owner.opview
        if not is_generic(reader) or use.operand_number >= input_count(reader):
            continue
        if is_copy(reader) and is_returned(reader):
            continue
        indexings = maps(reader)
        before = indexings[use.operand_number]
        indexings[use.operand_number] = compose(reading, before)
        number, now = use.operand_number, indexings[use.operand_number]
        if not worth_reading(reader, number, reading, before, now):
            continue
        if not ranges_known(reader, indexings, number):
            continue
        if map_dims(now)[-1:] != map_dims(before)[-1:] and stays(reader, number):
            continue
        reader.operation.operands[number] = source
        set_maps(reader, indexings)
        folded = True
    if folded and not list(result.uses):
        op.operation.erase()
    return folded


def worth_reading(
    reader: Op,
    number: int,
    reading: ir.AffineMap,
    before: ir.AffineMap,
    composed: ir.AffineMap,
) -> bool:
    """A window or a reversed copy is not folded where it would be read many times.

    Nor is a transpose of narrow numbers that a product sums along: it multiplies
    neighbours by one instruction; nor one of what windows share whose vectors lie along
    the result's: each of them would be gathered for every tap.
    """
    if "reduction" not in str(reader.operation.attributes["iterator_types"]):
        return True
    narrow = ir.RankedTensorType(inputs(reader)[0].type).element_type
    last, now = map_dims(before)[-1:], map_dims(composed)[-1:]
    made = {*map_dims(maps(reader)[-1])}
    if None in map_dims(before) and {*last} <= made - {None} and now != last:
        return False
    sums_along = is_contraction(reader) and not {*last} & made
    if sums_along and narrow.width < 32 and now != last:  # type: ignore[attr-defined]
        return False
    if is_contraction(reader) and splits_rows(reader, number, before, composed):
        return False
    return None not in map_dims(reading) or all(
        isinstance(e, (ir.AffineDimExpr, ir.AffineConstantExpr))
        for e in reading.results
    )


def splits_rows(
    reader: Op, number: int, before: ir.AffineMap, composed: ir.AffineMap
) -> bool:
    """Whether rows of a product that are one axis would be two, in another order.

    number: of the operand that has them.  A tile would have rows of one sequence, or of
    one step, where it may have those of several.
    """
    indexings = maps(reader)
    others = {d for i in (0, 1) if i != number for d in all_dims(indexings[i])}
    made = [d for d in map_dims(indexings[-1]) if d not in others]
    one, other = ([d for d in map_dims(m) if d in made] for m in (before, composed))
    return len(made) > 1 and one == made and other != made


def is_returned(op: Op) -> bool:
    return any(use.owner.name == "func.return" for use in op.operation.results[0].uses)


def ranges_known(reader: Op, indexings: list[ir.AffineMap], skip: int) -> bool:
    """Every dimension still has a plain operand that tells its extent."""
    del skip
    plain = {d for m in indexings for d in map_dims(m) if d is not None}
    return plain == set(range(indexings[0].n_dims)) and bool(reader)


def fold_into_writer(op: Op) -> bool:
    """Let the contraction that makes a transposed value write it transposed at once.

    Only where the innermost dimension stays: vectors are still written whole.
    """
    source = inputs(op)[0]
    owner = source.owner
    if isinstance(owner, ir.Block) or not is_generic(owner.opview):
        return False
    writer = owner.opview
    if not is_contraction(writer) or len(list(source.uses)) != 1:
        return False
    reading, rank = map_dims(maps(op)[0]), ir.RankedTensorType(source.type).rank
    plain = map_dims(maps(op)[1]) == list(range(rank))
    places = [d for d in reading if d is not None]
    if not plain or sorted(places) != list(range(rank)) or places[-1] != rank - 1:
        return False
    if not is_fill_value(outputs(writer)[0]):
        return False
    order = [places.index(d) for d in range(rank)]
    with ir.InsertionPoint(writer), writer.operation.location:
        made = transposed_contraction(writer, order)
    op.operation.results[0].replace_all_uses_with(made)
    op.operation.erase()
    writer.operation.erase()
    return True


def is_fill_value(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and is_fill(value.owner.opview)


def transposed_contraction(writer: Op, order: list[int]) -> ir.Value:
    """The same contraction into a result with its dimensions in another order."""
    fill = outputs(writer)[0].owner
    assert not isinstance(fill, ir.Block)
    kind = ir.RankedTensorType(outputs(writer)[0].type)
    shape = [kind.shape[i] for i in order]
    empty = tensor.empty(shape, kind.element_type)
    identity = ir.AffineMap.get_identity(len(shape))
    start = remade(fill.opview, [empty], [identity])
    indexings = maps(writer)
    out = indexings[-1]
    indexings[-1] = ir.AffineMap.get(out.n_dims, 0, [out.results[i] for i in order])
    return remade(writer, [*inputs(writer), start], indexings)


def pack_right_operands(module: ir.Module, inputs_count: int) -> None:
    """Give contractions of two activations a right operand that is read in vectors.

    right[n, k]  ->  copy to [k, n] first: a kernel of its own, a transpose.

    Not where few rows share it: their sums have lanes along k.
    inputs_count: so many arguments of @main are activations, the others parameters.
    """
    block = module.body.operations[0].operation.regions[0].blocks[0]
    parameters = list(block.arguments)[inputs_count:]
    for op in named(module, "linalg.generic"):
        if not at_top(op) or not is_contraction(op):
            continue
        shape = analyse(op)
        if shape is None or shape.contiguous or shape.other_columns:
            continue
        if lanes_along_k(alone(op), shape):
            continue
        source = inputs(op)[shape.right]
        if base(source) in parameters:
            continue  # packed while compiling
        dims = map_dims(maps(op)[shape.right])
        if None in dims:
            continue
        order = [*shape.shared, *shape.reduced, shape.column]
        with ir.InsertionPoint(op), op.operation.location:
            packed = transposed(source, [dims.index(d) for d in order])
        indexings = maps(op)
        indexings[shape.right] = ir.AffineMap.get(
            indexings[0].n_dims, 0, [ir.AffineDimExpr.get(d) for d in order]
        )
        op.operation.operands[shape.right] = packed
        set_maps(op, indexings)


def transposed(source: ir.Value, order: list[int]) -> ir.Value:
    """A copy with dimension order[i] of the source at place i."""
    kind = ir.RankedTensorType(source.type)
    shape = [kind.shape[i] for i in order]
    target = tensor.empty(shape, kind.element_type)
    reading = ir.AffineMap.get(
        len(order),
        0,
        [ir.AffineDimExpr.get(order.index(d)) for d in range(len(order))],
    )
    return pointwise([source], target, itself, [reading])
