"""Temporaries that grow with a size: their room in scratch memory is known at run time.

    t = alloc(min(m - i, 64), n) : ? x ? x f32   ->   an argument behind begin and end,
                                                      64 * n numbers of scratch memory

The function says in its attribute `nanoloom.rooms` what room each of them takes, so
that whoever calls it finds their places (llvm/stage.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from nanoloom.ir.access import constant_of, function_around, index
from nanoloom.ir.mlir import ir, named, sign
from nanoloom.vector.dynamic_extents import (
    described,
    given_extent,
    only_open_axis,
    size_number,
    size_of_argument,
)
from nanoloom.vector.nanokernel.tile.extents import most_number
from nanoloom.vector.temporaries import bytes_of

ROOMS = "nanoloom.rooms"  # of a function, for each such temporary: bytes, sizes


@dataclass(frozen=True)
class Room:
    """So many bytes times some of a kernel's sizes, by their numbers."""

    bytes: int
    sizes: tuple[int, ...]

    @property
    def attribute(self) -> ir.Attribute:
        return ir.DenseI64ArrayAttr.get([self.bytes, *self.sizes])


def rooms_of(function: ir.OpView) -> list[Room]:
    """Of a function's first arguments behind begin and end."""
    words = function.operation.attributes
    rows = list(words[ROOMS]) if ROOMS in words else []  # type: ignore[call-overload] - MLIR's stubs know no kinds of attributes
    return [Room(first, tuple(rest)) for first, *rest in map(list, rows)]


def is_temporary(argument: ir.Value) -> bool:
    """Whether a block's argument is such a room: no caller reads what is left in it.

    As long as no other argument is added behind them (scratch_memory.py).
    """
    block = ir.BlockArgument(argument).owner
    named = block.owner.operation.name == "func.func"
    rooms = rooms_of(block.owner) if named else []
    return argument in list(block.arguments)[len(block.arguments) - len(rooms) :]


def place_sized(module: ir.Module) -> None:
    """Give each allocation that grows with sizes an argument of its function."""
    for op in named(module, "memref.alloc"):
        kind = ir.MemRefType(op.operation.results[0].type)
        room = room_of(kind, list(op.operation.operands), function_around(op))
        if room is not None and room.sizes:
            to_argument(op, kind, room)


def room_of(
    kind: ir.MemRefType, sizes: list[ir.Value], function: ir.Operation
) -> Room | None:
    """What a temporary takes at most; None if that is not known."""
    known, open_ = [n for n in kind.shape if n >= 0], list[int]()
    for value in sizes:
        most = most_number(value)
        times, place = (most, None) if most is not None else multiple(value, function)
        if times is None:
            return None
        known.append(times)
        open_ += [] if place is None else [place]
    return Room(prod(known) * bytes_of(kind.element_type), tuple(open_))


def multiple(
    value: ir.Value, function: ir.Operation
) -> tuple[int, int] | tuple[None, None]:
    """How many times which size an index is at most: 2 n + 1 is at most 3 n,
    as n is not 0; 3 n - 2, too.

    What windows of a stride read of a row is such a sum.
    """
    owner = value.owner
    place = size_number(value, function)
    if place is not None:
        return 1, place
    if isinstance(owner, ir.Block):
        return None, None
    if owner.name == "memref.dim":
        known = constant_of(owner.operands[1])
        found = None if known is None else multiples(owner.operands[0], known, function)
        sizes = {size for _, size in found or ()}
        most = max((times for times, _ in found or ()), default=0)
        return (most, sizes.pop()) if len(sizes) == 1 else (None, None)
    if owner.name != "affine.apply":
        return None, None
    (expr,) = owner.attributes["map"].value.results  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
    if len(owner.operands) != 1:
        return None, None
    place, times = size_number(owner.operands[0], function), sum_of_factors(expr)
    return (None, None) if place is None or times is None else (times, place)


def multiples(
    buffer: ir.Value, place: int, function: ir.Operation
) -> set[tuple[int, int]] | None:
    """How many times which size an extent of a buffer may be at most; None where
    nobody can say.

    One of each branch that the buffer may come out of.
    """
    owner = buffer.owner
    if isinstance(owner, ir.Block):
        size = size_of_argument(buffer, place, function)
        return None if size is None else {(1, size)}
    if owner.name == "memref.cast":
        return multiples(owner.operands[0], place, function)
    if owner.name == "scf.if":
        number = ir.OpResult(buffer).result_number
        ends = [list(region.blocks[0].operations)[-1] for region in owner.regions]
        given = [multiples(end.operands[number], place, function) for end in ends]
        return None if None in given else {x for each in given for x in each or ()}
    if owner.name == "memref.collapse_shape":
        axis, factor = only_open_axis(owner, place) or (None, 0)
        joined = axis is not None and multiples(owner.operands[0], axis, function)
        return {(factor * times, size) for times, size in joined} if joined else None
    value = given_extent(buffer, place)
    times, size = (None, None) if value is None else multiple(value, function)
    return None if times is None or size is None else {(times, size)}


def sum_of_factors(expr: ir.AffineExpr) -> int | None:
    """a + b of a n + b, a of a n - b; None for others, and where a is below 0."""
    if isinstance(expr, ir.AffineDimExpr | ir.AffineSymbolExpr):
        return 1
    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value if expr.value >= 0 else None
    if not isinstance(expr, ir.AffineAddExpr | ir.AffineMulExpr):
        return None
    if isinstance(expr, ir.AffineAddExpr) and is_below_0(expr.rhs):
        return sum_of_factors(expr.lhs)
    one, other = sum_of_factors(expr.lhs), sum_of_factors(expr.rhs)
    if one is None or other is None:
        return None
    return one + other if isinstance(expr, ir.AffineAddExpr) else one * other


def is_below_0(expr: ir.AffineExpr) -> bool:
    return isinstance(expr, ir.AffineConstantExpr) and expr.value < 0


def to_argument(op: ir.OpView, kind: ir.MemRefType, room: Room) -> None:
    """An allocation becomes its function's last argument."""
    function, location = function_around(op), op.operation.location
    block = function.regions[0].blocks[0]
    pointer = block.add_argument(ir.MemRefType.get([1], kind.element_type), location)
    with ir.InsertionPoint(op), location:
        given = iter(op.operation.operands)
        extents = [index(n) if n >= 0 else next(given) for n in kind.shape]
        made = described(pointer, kind, extents)
    op.operation.results[0].replace_all_uses_with(made)
    op.operation.erase()
    before = rooms_of(function.opview)
    function.attributes[ROOMS] = ir.ArrayAttr.get(
        [each.attribute for each in (*before, room)]
    )
    sign(function, [])
