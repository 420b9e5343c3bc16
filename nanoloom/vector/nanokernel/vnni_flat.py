"""Flat operands for AMX: pairs of rows are woven on the way (paper, section 4.3.2).

An activation cannot be packed while compiling.  Where a task begins, the rows of its
right operand that lie together in VNNI order are woven into a block of its own:

    block[k / 2][2 * n + k % 2] = right[k][n]

once for all register tiles of the task.
"""

from __future__ import annotations

from nanoloom.kernels.contraction import Contraction
from nanoloom.kernels.structure import Op, inputs, map_dims, maps
from nanoloom.mlir import arith, ir, linalg, scf, tensor, vector
from nanoloom.vector.access import add, index
from nanoloom.vector.nanokernel.tile import as_index, plus, slice_offsets

MARK = "nanoloom.interleave"  # on a generic: lower() makes its loops
GROUP = 2
LANES = 32  # bf16 numbers of a vector


def woven_part(op: Op, shape: Contraction, columns: int) -> ir.Value:
    """The columns of the woven block that a tile reads: [K / 2, 2 * columns]."""
    source, offset = at_task(op, shape)
    block = weave(source, op, shape, columns)
    depth = ir.RankedTensorType(block.type).shape[0]
    made = ir.RankedTensorType.get([depth, GROUP * columns], ir.BF16Type.get())
    start = arith.muli(as_index(offset), index(GROUP))
    dynamic = -(1 << 63)
    return tensor.ExtractSliceOp(
        made,
        block,
        [start],
        [],
        [],
        [0, dynamic],
        [depth, GROUP * columns],
        [1, 1],
    ).result


def at_task(op: Op, shape: Contraction) -> tuple[ir.Value, ir.Value | int]:
    """The right operand as the task sees it, and the tile's first column in it."""
    value = inputs(op)[shape.right]
    column = map_dims(maps(op)[shape.right]).index(shape.column)
    offset: ir.Value | int = 0
    while not isinstance(value.owner, ir.Block):
        owner = value.owner
        if owner.name != "tensor.extract_slice" or in_task(owner):
            break
        offset = plus(offset, slice_offsets(owner)[column])
        value = owner.operands[0]
    return value, offset


def in_task(op: ir.Operation) -> bool:
    """Whether an operation stands directly in a task, outside of loops over tiles."""
    parent = op.parent
    assert parent is not None
    return parent.operation.name in ("scf.forall", "func.func")


def weave(source: ir.Value, op: Op, shape: Contraction, columns: int) -> ir.Value:
    """The woven block, made once behind its source; columns: it has whole tiles."""
    for use in source.uses:
        if MARK in use.owner.operation.attributes:
            (slot,) = list(use.owner.operation.results[0].uses)
            return slot.owner.operation.results[0]
    kind = ir.RankedTensorType(source.type)
    dims = map_dims(maps(op)[shape.right])
    depth = kind.shape[dims.index(shape.reduced[0])] // GROUP
    width = kind.shape[dims.index(shape.column)]
    whole = -(-width // columns) * columns
    with behind(source, op):
        bf16 = ir.BF16Type.get()
        block = tensor.empty([depth, GROUP * whole], bf16)
        part = ir.RankedTensorType.get([depth, GROUP * width], bf16)
        sizes = [depth, GROUP * width]
        inside = tensor.ExtractSliceOp(
            part, block, [], [], [], [0, 0], sizes, [1, 1]
        ).result
        made = interleaved(source, inside, dims, shape)
        return tensor.InsertSliceOp(
            made, block, [], [], [], [0, 0], sizes, [1, 1]
        ).result


def behind(source: ir.Value, op: Op) -> ir.InsertionPoint:
    """Where a value is known, outside of the loops over tiles."""
    if not isinstance(source.owner, ir.Block):
        return ir.InsertionPoint.after(source.owner)
    outer = op.operation
    while not in_task(outer):
        parent = outer.parent
        assert parent is not None
        outer = parent.operation
    return ir.InsertionPoint(outer)


def interleaved(
    source: ir.Value, target: ir.Value, dims: list[int | None], shape: Contraction
) -> ir.Value:
    """target[k2, j] = source[2 k2 + j mod 2, j floordiv 2], as a marked generic."""
    k2, j = ir.AffineDimExpr.get(0), ir.AffineDimExpr.get(1)
    row = k2 * GROUP + ir.AffineExpr.get_mod(j, GROUP)
    place = {
        shape.reduced[0]: row,
        shape.column: ir.AffineExpr.get_floor_div(j, GROUP),
    }
    zero = ir.AffineConstantExpr.get(0)
    reading = ir.AffineMap.get(2, 0, [place.get(d, zero) for d in dims])  # type: ignore[arg-type]
    identity = ir.AffineMap.get_identity(2)
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    made = linalg.GenericOp(
        [target.type],
        [source],
        [target],
        ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in (reading, identity)]),
        ir.ArrayAttr.get([parallel] * 2),
    )
    depth_place, column_place = dims.index(shape.reduced[0]), dims.index(shape.column)
    made.operation.attributes[MARK] = ir.DenseI64ArrayAttr.get(
        [depth_place, column_place]
    )
    bf16 = ir.BF16Type.get()
    body = made.regions[0].blocks.append(bf16, bf16)
    with ir.InsertionPoint(body):
        linalg.YieldOp([body.arguments[0]])
    return made.results[0]


def lower(op: Op) -> None:
    """Loops over pairs of rows and vectors of columns (on buffers)."""
    source, target = op.operation.operands
    depth_place, column_place = list(op.operation.attributes[MARK])  # type: ignore[call-overload]
    depth, width = ir.MemRefType(target.type).shape
    columns = width // GROUP
    rows = scf.ForOp(index(0), index(depth), index(1))
    with ir.InsertionPoint(rows.body):
        k = arith.muli(rows.induction_variable, index(GROUP))
        whole = columns // LANES * LANES
        if whole:
            loop = scf.ForOp(index(0), index(whole), index(LANES))
            with ir.InsertionPoint(loop.body):
                n = loop.induction_variable
                places = (depth_place, column_place)
                weave_vectors(source, target, places, k, n, LANES)
                scf.yield_([])
        if columns > whole:
            places = (depth_place, column_place)
            weave_vectors(source, target, places, k, index(whole), columns - whole)
        scf.yield_([])
    op.operation.erase()


def weave_vectors(
    source: ir.Value,
    target: ir.Value,
    places: tuple[int, int],
    k: ir.Value,
    n: ir.Value,
    count: int,
) -> None:
    """`count` columns of two rows, one number of each in turn."""
    bf16 = ir.BF16Type.get()
    kind = ir.VectorType.get([count], bf16)
    rank = ir.MemRefType(source.type).rank
    zero = arith.constant(bf16, 0.0)
    inside = ir.ArrayAttr.get([ir.BoolAttr.get(True)])
    column = ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(places[1])])
    both: list[ir.Value] = []
    for ahead in range(GROUP):
        at = [index(0)] * rank
        at[places[0]], at[places[1]] = add(k, index(ahead)), n
        both.append(
            vector.transfer_read(
                kind, source, at, ir.AffineMapAttr.get(column), zero, inside
            )
        )
    # As integers: LLVM has no shuffle of bf16 for numbers of columns like 17.
    i16 = ir.IntegerType.get_signless(16)
    bits = [vector.bitcast(ir.VectorType.get([count], i16), x) for x in both]
    woven = vector.interleave(*bits)
    woven = vector.bitcast(ir.VectorType.get([GROUP * count], bf16), woven)
    pair = arith.divui(k, index(GROUP))
    last = ir.AffineMap.get(2, 0, [ir.AffineDimExpr.get(1)])
    start = arith.muli(n, index(GROUP))
    vector.TransferWriteOp(
        None, woven, target, [pair, start], ir.AffineMapAttr.get(last), inside
    )
