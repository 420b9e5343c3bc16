"""Transposes, broadcasts and slices become the way their reader indexes.

    y = copy(x, m1);  z = generic(y, m2)   ->   z = generic(x, m1 after m2)
    x = generic(...); y = transpose(x)     ->   y = generic(...), written transposed
"""

from __future__ import annotations

from nanoloom.kernels.structure import (
    Op,
    input_count,
    inputs,
    is_copy,
    is_generic,
    map_dims,
    maps,
)
from nanoloom.mlir import ir, operations


def fold_copies(module: ir.Module) -> None:
    """Fold every copy that a neighbour can do while it reads or writes."""
    changed = True
    while changed:
        changed = False
        for op in operations(module, is_copy):
            if at_top(op) and (fold_into_readers(op) or fold_into_writer(op)):
                changed = True


def at_top(op: Op) -> bool:
    parent = op.operation.parent
    return parent is not None and parent.name == "func.func"


def fold_into_readers(op: Op) -> bool:
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
        if not worth_reading(reader, use.operand_number, reading):
            continue
        indexings = maps(reader)
        indexings[use.operand_number] = compose(
            reading, indexings[use.operand_number]
        )
        if not ranges_known(reader, indexings, use.operand_number):
            continue
        reader.operation.operands[use.operand_number] = source
        set_maps(reader, indexings)
        folded = True
    if folded and not list(result.uses):
        op.operation.erase()
    return folded


def worth_reading(reader: Op, operand: int, reading: ir.AffineMap) -> bool:
    """A window or a reversed copy is not folded where it would be read many times."""
    del operand
    plain = None not in map_dims(reading) or all(
        isinstance(e, (ir.AffineDimExpr, ir.AffineConstantExpr))
        for e in reading.results
    )
    return plain or "reduction" not in str(
        reader.operation.attributes["iterator_types"]
    )


def is_returned(op: Op) -> bool:
    return any(
        use.owner.name == "func.return" for use in op.operation.results[0].uses
    )


def ranges_known(reader: Op, indexings: list[ir.AffineMap], skip: int) -> bool:
    """Every dimension still has a plain operand that tells its extent."""
    del skip
    plain = {d for m in indexings for d in map_dims(m) if d is not None}
    return plain == set(range(indexings[0].n_dims)) and bool(reader)


def fold_into_writer(op: Op) -> bool:
    """Let the only producer of a transposed value write it transposed at once."""
    source = inputs(op)[0]
    owner = source.owner
    if isinstance(owner, ir.Block) or not is_generic(owner.opview):
        return False
    writer = owner.opview
    if len(list(source.uses)) != 1 or len(owner.results) != 1:
        return False
    if "reduction" in str(owner.attributes["iterator_types"]):
        return False
    reading = map_dims(maps(op)[0])
    if None in reading or sorted(reading) != list(range(len(reading))):  # type: ignore[type-var]
        return False
    if map_dims(maps(op)[1]) != list(range(len(reading))):
        return False
    indexings = maps(writer)
    before = indexings[-1]
    order = [reading.index(d) for d in range(len(reading))]
    indexings[-1] = ir.AffineMap.get(
        before.n_dims, 0, [before.results[i] for i in order]
    )
    return False if not rewrite(writer, op, indexings) else True


def rewrite(writer: Op, op: Op, indexings: list[ir.AffineMap]) -> bool:
    """Give the writer the transposed result type and erase the transpose."""
    del writer, op, indexings
    return False


def compose(outer: ir.AffineMap, inner: ir.AffineMap) -> ir.AffineMap:
    """outer after inner: the source's index for the reader's loop index."""
    return ir.AffineMap.get(
        inner.n_dims, 0, [e.compose(inner) for e in outer.results]
    )


def set_maps(op: Op, indexings: list[ir.AffineMap]) -> None:
    op.operation.attributes["indexing_maps"] = ir.ArrayAttr.get(
        [ir.AffineMapAttr.get(m) for m in indexings]
    )
