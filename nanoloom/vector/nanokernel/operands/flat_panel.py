"""A right operand that is not packed: a task's columns as a block of their own.

    for k...: for n in columns: block[k][n] = right[k][n]

once for all register tiles of a task, where rows over the edge can be read by single
numbers only: the block has room for whole vectors.  Multiply-adds fill it between their
products (fma_panel.py).
"""

from __future__ import annotations

from nanoloom.ir.access import index
from nanoloom.ir.linalg_query import map_dims, maps
from nanoloom.ir.mlir import arith, ir, tensor
from nanoloom.linalg.builder.pointwise import itself, pointwise
from nanoloom.linalg.builder.tensor_slices import Number, extents_of, inserted, sliced
from nanoloom.nest.extent import Lanes
from nanoloom.vector.nanokernel.tile.extents import most_of
from nanoloom.vector.nanokernel.tile.task import after_tasks, at_task
from nanoloom.vector.nanokernel.tile.tile import Tile, zero_of
from nanoloom.vector.vector_copies import along_rows, fill_rows


def copy_right(tile: Tile) -> None:
    """Let a tile read its right operand from the task's copy.

    Nothing happens where a task has more columns than a tile, or where it is not known
    how large its part is.
    """
    source, _ = at_task(tile.op, tile.shape)
    kind = ir.RankedTensorType(source.type)
    extents = [most_of(source, place) for place in range(kind.rank)]
    place = map_dims(maps(tile.op)[tile.shape.right]).index(tile.shape.column)
    known = [e for e in extents if e is not None]
    if len(known) < kind.rank or known[place] > tile.columns:
        return
    known[place] = tile.columns
    with after_tasks(source, tile.op):
        lanes = tile.lanes_of(kind.element_type)
        tile.right_copy = copied(source, known, lanes)


def copied(source: ir.Value, extents: list[int], lanes: Lanes) -> ir.Value:
    """The copy, in room for these extents.

    It has a dimension of 1 more in between: MLIR takes a copy from one tensor to
    another of the same shape for nothing, and reads the source.
    """
    kind = ir.RankedTensorType(source.type)
    rank, last = kind.rank, kind.rank - 1
    room = tensor.empty([*extents[:last], 1, extents[last]], kind.element_type)
    room = zeros_behind(room, source, lanes)
    begin, sizes = [0] * (rank + 1), extents_of(source)
    sizes.insert(last, 1)
    inside = sliced(room, begin, sizes)
    dims = [ir.AffineDimExpr.get(d) for d in range(rank)]
    between = [*dims[:last], ir.AffineConstantExpr.get(0), dims[last]]
    writing = ir.AffineMap.get(rank, 0, between)
    same = [ir.AffineMap.get_identity(rank)]
    words = along_rows(rank, lanes)
    made = pointwise([source], inside, itself, same, writing, words)
    whole = inserted(made, room, begin, sizes)
    filled = ir.RankedTensorType(whole.type).shape
    return sliced(whole, begin, filled, shape=extents)


def zeros_behind(room: ir.Value, source: ir.Value, lanes: Lanes) -> ir.Value:
    """The room with zeros in the columns that the source does not reach.

    Tiles read whole vectors, and what happens to be there might be slow to multiply.
    """
    kind, shape = ir.RankedTensorType(source.type), ir.RankedTensorType(room.type).shape
    here, rank = kind.shape[-1], len(shape)
    if here == shape[-1]:
        return room
    begin: Number = here
    count: Number = shape[-1] - here
    if kind.is_dynamic_dim(kind.rank - 1):
        begin = tensor.dim(source, index(kind.rank - 1))
        count = arith.subi(index(shape[-1]), begin)
    starts, sizes = [*[0] * (rank - 1), begin], [*shape[:-1], count]
    zeros = fill_rows(
        sliced(room, starts, sizes), lambda: zero_of(kind.element_type), lanes
    )
    return inserted(zeros, room, starts, sizes)
