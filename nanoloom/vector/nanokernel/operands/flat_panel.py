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
    sizes = [
        tensor.dim(source, index(place))
        for place in range(rank)
        if kind.is_dynamic_dim(place)
    ]
    shape = [*kind.shape[:last], 1, kind.shape[last]]
    inside = slice_of(room, shape, sizes, shape)
    dims = [ir.AffineDimExpr.get(d) for d in range(rank)]
    between = [*dims[:last], ir.AffineConstantExpr.get(0), dims[last]]
    writing = ir.AffineMap.get(rank, 0, between)
    same = [ir.AffineMap.get_identity(rank)]
    words = along_rows(rank, lanes)
    made = pointwise([source], inside, itself, same, writing, words)
    zeros, ones = [0] * len(shape), [1] * len(shape)
    whole = tensor.InsertSliceOp(made, room, [], sizes, [], zeros, shape, ones).result
    filled = list(ir.RankedTensorType(whole.type).shape)
    return slice_of(whole, filled, [], extents)


def zeros_behind(room: ir.Value, source: ir.Value, lanes: Lanes) -> ir.Value:
    """The room with zeros in the columns that the source does not reach.

    Tiles read whole vectors, and what happens to be there might be slow to multiply.
    """
    kind, shape = ir.RankedTensorType(source.type), ir.RankedTensorType(room.type).shape
    here, rank = kind.shape[-1], len(shape)
    if here == shape[-1]:
        return room
    offsets, sizes = [0] * (rank - 1) + [here], [*shape[:-1], shape[-1] - here]
    begin: list[ir.Value] = []
    count: list[ir.Value] = []
    if kind.is_dynamic_dim(kind.rank - 1):
        unknown = ir.ShapedType.get_dynamic_size()
        offsets[-1] = ir.ShapedType.get_dynamic_stride_or_offset()
        sizes[-1] = unknown
        begin = [tensor.dim(source, index(kind.rank - 1))]
        count = [arith.subi(index(shape[-1]), begin[0])]
    element = ir.RankedTensorType(room.type).element_type
    made, ones = ir.RankedTensorType.get(sizes, element), [1] * rank
    rest = tensor.ExtractSliceOp(made, room, begin, count, [], offsets, sizes, ones)
    zeros = fill_rows(rest.result, lambda: zero_of(element), lanes)
    return tensor.InsertSliceOp(
        zeros, room, begin, count, [], offsets, sizes, ones
    ).result


def slice_of(
    value: ir.Value, shape: list[int], sizes: list[ir.Value], kept: list[int]
) -> ir.Value:
    """The beginning of a tensor; kept: the shape without dimensions of 1 to drop."""
    element = ir.RankedTensorType(value.type).element_type
    zeros, ones = [0] * len(shape), [1] * len(shape)
    made = ir.RankedTensorType.get(kept, element)
    return tensor.ExtractSliceOp(made, value, [], sizes, [], zeros, shape, ones).result
