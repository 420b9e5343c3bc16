"""The left operand's rows of a tile in the type they are multiplied in.

    for r in rows: for k...: wide[r][k] = f32(left[r][k])

in front of the nanokernel's loops: every number is read once a vector of columns, and
a number that is ready costs a load alone.  The copy is small and stays in the cache.
"""

from __future__ import annotations

from collections.abc import Callable

from nanoloom.errors import Error
from nanoloom.ir.make_generic import element_type
from nanoloom.ir.mlir import arith, bufferization, ir, tensor
from nanoloom.linalg.builder.pointwise import pointwise
from nanoloom.linalg.builder.tensor_slices import extents_of, sliced
from nanoloom.nest.extent import Lanes
from nanoloom.target.instructions.instruction import LANE
from nanoloom.vector.nanokernel.tile.extents import most_of
from nanoloom.vector.nanokernel.tile.tile import Tile
from nanoloom.vector.vector_copies import along_rows


def convert_lhs(
    tile: Tile,
    element: ir.Type,
    made: Callable[[ir.Value], ir.Value] | None = None,
    *,
    signed: bool = True,
    apart: int = 0,
) -> None:
    """Let a tile read its left operand as numbers of a wider type; exact.

    made: what becomes of a number, by default itself.  apart: numbers behind each row,
    for rows of the cache are few where theirs lie a power of two apart.  Nothing
    happens where the tile says so: the nanokernel converts what it reads itself.
    """
    kind, widened = ir.RankedTensorType(tile.left.type), tile.plan.convert_lhs
    if not widened:
        return
    extents = [most_of(tile.left, place) for place in range(kind.rank)]
    known = [e for e in extents if e is not None]
    if len(known) < kind.rank:
        raise Error("how far the left operand of a tile reaches is not known")
    if widened < tile.steps:
        raise Error(
            f"widened = {widened}: a nanokernel that copies no panel converts whole "
            f"rows, {tile.steps} numbers"
        )
    room: ir.Value = tensor.empty(known, element)
    if apart:  # a part of an empty tensor would be one without gaps
        wider = ir.RankedTensorType.get([*known[:-1], known[-1] + apart], element)
        room = bufferization.alloc_tensor(wider, [])
    target = part_of(room, tile.left)
    words = along_rows(kind.rank, whole_registers(tile.plan.lanes, element, known))
    convert = made or (lambda x: extended(element, x, signed))
    tile.left_copy = pointwise([tile.left], target, convert, words=words)


def whole_registers(lanes: Lanes, element: ir.Type, extents: list[int]) -> Lanes:
    """A copy's vectors: registers full of its numbers, where these divide its rows.

    lanes: of a register of 32-bit numbers.
    """
    more = max(1, LANE // element.width)  # type: ignore[attr-defined] - of numbers
    wide = Lanes(lanes.count * more)
    fits = bool(extents) and not lanes.scalable and extents[-1] % wide.count == 0
    return wide if fits else lanes


def part_of(room: ir.Value, value: ir.Value) -> ir.Value:
    """The beginning of `room`, as large as `value`."""
    kind, whole = ir.RankedTensorType(value.type), ir.RankedTensorType(room.type)
    if list(kind.shape) == list(whole.shape):
        return room
    return sliced(room, [0] * kind.rank, extents_of(value))


def extended(kind: ir.Type, value: ir.Value, signed: bool = True) -> ir.Value:
    """A number, or a vector of them, as a wider type."""
    if value.type == kind:
        return value
    if isinstance(element_type(kind), ir.FloatType):
        return arith.extf(kind, value)
    return (arith.extsi if signed else arith.extui)(kind, value)
