"""What follows a contraction, on the accumulators while they are in registers."""

from __future__ import annotations

from nanoloom.ir.access import index
from nanoloom.ir.linalg_query import (
    Op,
    input_count,
    inputs,
    is_fill,
    is_generic,
    is_identity,
    iterators,
    maps,
)
from nanoloom.ir.mlir import arith, ir, made_by, tensor, vector
from nanoloom.nest.extent import Lanes
from nanoloom.target.facts import LANE_BITS
from nanoloom.vector.body import VectorBody
from nanoloom.vector.lane_values import Uniform, Vector
from nanoloom.vector.nanokernel.tile.tile import (
    Tile,
    place_of,
    read_vector,
    write_vector,
)


def consumers(op: Op) -> list[Op]:
    """The operations behind a tile, in the same loop body, that are elementwise on it.

    Where one tile is all of a chain's rows, what follows stands there without a loop:
    sums along rows, what turns them, and others that read again what is between, which
    is written for them.
    """
    inside: set[ir.Value] = {op.operation.results[0]}
    found: list[Op] = []
    seen = False
    for other in op.operation.block.operations:
        if other.operation == op.operation:
            seen = True
            continue
        if not seen or not is_generic(other):
            continue
        if any(value in inside for value in inputs(other)):
            if not is_elementwise_on(inside, other):
                break
            found.append(other)
            inside.add(other.operation.results[0])
    return until_read_again(op, found)


def is_elementwise_on(inside: set[ir.Value], op: Op) -> bool:
    """Whether an operation reads such values at the places that it writes.

    And none of a table, at a place that a value says: that is read from a buffer.  Nor
    any whose columns are not its last axis: it is read a number at a time.
    """
    body = op.operation.regions[0].blocks[0]
    reading = list(zip(inputs(op), maps(op), strict=False))
    column = ir.AffineDimExpr.get(max(len(iterators(op)) - 1, 0))
    return (
        "reduction" not in iterators(op)
        and all(each.operation.name != "tensor.extract" for each in body.operations)
        and len(list(op.operation.results)) == 1
        and is_identity(maps(op)[-1])
        and all(is_identity(m) for value, m in reading if value in inside)
        and all(column not in list(m.results)[:-1] for _, m in reading)
    )


def until_read_again(op: Op, found: list[Op]) -> list[Op]:
    """The operations up to a value that others of the same loop body read, too."""
    known = {each.operation for each in found}
    for count, each in enumerate((op, *found)):
        users = {use.owner.operation for use in each.operation.results[0].uses} - known
        beside = (u for u in users if u.block == op.operation.block)
        if any(is_generic(user.opview) for user in beside):
            return found[:count]
    return found


def finish(tile: Tile, accumulators: list[ir.Value]) -> None:
    """Compute the epilogue on every accumulator and write the result once."""
    chain = consumers(tile.op)
    last = chain[-1] if chain else tile.op
    target = unfilled(list(last.operation.operands)[-1])
    out = maps(last)[-1]
    vectors = tile.plan.vectors
    with ir.InsertionPoint(last):
        for r in range(tile.plan.rows):
            made: list[ir.Value] = []
            masks = [tile.mask(r, v) for v in range(vectors)]
            for v, mask in enumerate(masks):
                sums = accumulators[r * vectors + v]
                made.append(through(tile, chain, sums, r, v, mask))
                if len(made) < together(made, masks):
                    continue
                first = index((v + 1 - len(made)) * tile.lanes)
                at = place_of(out, tile_ivs(tile, last, index(r), first))
                target = write_vector(joined(made), target, at, mask)
                made = []
    # What is left without users goes with the next clean-up: the script's handles of it
    # would point nowhere if it were erased here.
    last.operation.results[0].replace_all_uses_with(target)


def together(made: list[ir.Value], masks: list[ir.Value | None]) -> int:
    """How many vectors of a row are made narrower and written at once.

    Those of whole rows that fill a register of narrower integers: two registers become
    one in fewer instructions than each a part of one.
    """
    narrowed = ir.VectorType(made[0].type)
    (lanes,), vectors = narrowed.shape, len(masks)
    wide = made_by(made[0], "arith.trunci")
    if wide is None or narrowed.scalable or any(mask is not None for mask in masks):
        return 1
    bits = ir.IntegerType(narrowed.element_type).width
    fit = LANE_BITS // (lanes * bits)
    return next((n for n in (4, 2) if n <= fit and vectors % n == 0), 1)


def joined(made: list[ir.Value]) -> ir.Value:
    """Narrower vectors behind each other: they are joined, then made narrower."""
    if len(made) == 1:
        return made[0]
    values = [narrow.owner.operands[0] for narrow in made]
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=True)
        values = [behind(*pair) for pair in pairs]
    lanes = ir.VectorType(values[0].type).shape
    element = ir.VectorType(made[0].type).element_type
    return arith.trunci(ir.VectorType.get(lanes, element), values[0])


def behind(first: ir.Value, second: ir.Value) -> ir.Value:
    """A vector, and another one behind it."""
    (lanes,) = ir.VectorType(first.type).shape
    return vector.shuffle(first, second, range(2 * lanes))


def unfilled(target: ir.Value) -> ir.Value:
    """The tensor under a fill: the accumulators start from its number already."""
    owner = made_by(target)
    filled = owner is not None and is_fill(owner.opview)
    return owner.operands[0] if filled else target  # type: ignore[union-attr] - `filled` says so


def tile_ivs(tile: Tile, op: Op, row: ir.Value, column: ir.Value) -> list[ir.Value]:
    """Loop variables of an operation of the epilogue, or of the contraction itself."""
    if op is tile.op:
        return tile.ivs(row, column)
    out = maps(tile.op)[2]
    values: list[ir.Value] = []
    for expr in out.results:
        dim = expr.position  # type: ignore[attr-defined]
        if dim == tile.row:
            values.append(row)
        elif dim == tile.shape.column:
            values.append(column)
        else:
            values.append(index(0))
    return values


def through(
    tile: Tile, chain: list[Op], value: ir.Value, r: int, v: int, mask: ir.Value | None
) -> ir.Value:
    """One accumulator through the whole epilogue."""
    known: dict[ir.Value, ir.Value] = {tile.op.operation.results[0]: value}
    made = value
    for op in chain:
        ivs = tile_ivs(tile, op, tile.row_index(r), index(v * tile.lanes))
        column = len(ivs) - 1
        body = VectorBody(Lanes(tile.lanes), column, ivs, mask)
        block = op.operation.regions[0].blocks[0]
        for argument, operand, indexing in zip(
            block.arguments, op.operation.operands, maps(op), strict=True
        ):
            if operand in known:
                body.values[argument] = Vector(known[operand])
            elif list(argument.uses):
                body.values[argument] = outside(operand, indexing, ivs, tile, mask)
        made = body.vector(body.emit(block)[0])
        known[op.operation.results[0]] = made
    return made


def outside(
    operand: ir.Value,
    indexing: ir.AffineMap,
    ivs: list[ir.Value],
    tile: Tile,
    mask: ir.Value | None,
) -> Uniform | Vector:
    """An operand of the epilogue that the contraction did not make: bias, residual."""
    if not isinstance(operand.type, ir.RankedTensorType):
        return Uniform(operand)
    at = place_of(indexing, ivs)
    column = ir.AffineDimExpr.get(len(ivs) - 1)
    if column in list(indexing.results):
        assert indexing.results[-1] == column, indexing
        return Vector(read_vector(operand, at, tile.lanes, mask))
    return Uniform(tensor.extract(operand, at))


__all__ = ["consumers", "finish", "input_count"]
