"""Flat operands for AMX: pairs of rows are woven on the way (paper, section 4.3.2).

An activation cannot be packed while compiling.  Where a task begins, the rows of its
right operand that lie together in VNNI order are woven into a block of its own:

    block[k / 2][2 * n + k % 2] = right[k][n]

once for all register tiles of the task, with zeros behind the last row: tile registers
are loaded whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.errors import Error
from nanoloom.kernels.contraction import Contraction
from nanoloom.kernels.structure import Op, map_dims, maps
from nanoloom.mlir import arith, ir, linalg, memref, scf, tensor, vector
from nanoloom.schedule.families import AMX_BF16
from nanoloom.vector.access import add, apply, index
from nanoloom.vector.nanokernel.extents import most_of
from nanoloom.vector.nanokernel.task import at_task, behind
from nanoloom.vector.nanokernel.tile import as_index

MARK = "nanoloom.interleave"  # on a generic: lower() makes its loops
GROUP = 2
LANES = 32  # bf16 numbers of a vector
DYNAMIC = -(1 << 63)  # as MLIR writes it


def woven_part(op: Op, shape: Contraction, columns: int) -> ir.Value:
    """The columns of the woven block that a tile reads: [pairs, 2 * columns]."""
    source, offset = at_task(op, shape)
    block = weave(source, op, shape, columns)
    depth = ir.RankedTensorType(block.type).shape[0]
    made = ir.RankedTensorType.get([depth, GROUP * columns], ir.BF16Type.get())
    start = arith.muli(as_index(offset), index(GROUP))
    return tensor.ExtractSliceOp(
        made,
        block,
        [start],
        [],
        [],
        [0, DYNAMIC],
        [depth, GROUP * columns],
        [1, 1],
    ).result


def weave(source: ir.Value, op: Op, shape: Contraction, columns: int) -> ir.Value:
    """The woven block, made once behind its source; columns: it has whole tiles."""
    for use in source.uses:
        if MARK in use.owner.operation.attributes:
            (slot,) = list(use.owner.operation.results[0].uses)
            return slot.owner.operation.results[0]
    kind = ir.RankedTensorType(source.type)
    dims = map_dims(maps(op)[shape.right])
    depth = AMX_BF16.groups(shape.extents[shape.reduced[0]])
    place = dims.index(shape.column)
    width = most_of(source, place)
    if width is None:
        raise Error("AMX wants to know how wide the right operand of a task is")
    whole = -(-width // columns) * columns
    with behind(source, op):
        bf16 = ir.BF16Type.get()
        block = tensor.empty([depth, GROUP * whole], bf16)
        sizes, given = [depth, GROUP * width], list[ir.Value]()
        if kind.is_dynamic_dim(place):
            sizes[1] = DYNAMIC
            given = [arith.muli(tensor.dim(source, index(place)), index(GROUP))]
        part = ir.RankedTensorType.get(sizes, bf16)
        inside = tensor.ExtractSliceOp(
            part, block, [], given, [], [0, 0], sizes, [1, 1]
        ).result
        made = interleaved(source, inside, dims, shape)
        return tensor.InsertSliceOp(
            made, block, [], given, [], [0, 0], sizes, [1, 1]
        ).result


def interleaved(
    source: ir.Value, target: ir.Value, dims: list[int | None], shape: Contraction
) -> ir.Value:
    """target[k2, j] = source[k, j floordiv 2], k = 2 k2 + j mod 2, as a marked generic.

    Behind the source's K rows zeros; the map has k mod K for them, so that it stays
    within the source.
    """
    k2, j = ir.AffineDimExpr.get(0), ir.AffineDimExpr.get(1)
    row = k2 * GROUP + ir.AffineExpr.get_mod(j, GROUP)
    extent = shape.extents[shape.reduced[0]]
    place = {
        shape.reduced[0]: ir.AffineExpr.get_mod(row, extent),
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
        ivs = [linalg.IndexOp(d).result for d in range(2)]
        there = arith.cmpi(arith.CmpIPredicate.ult, apply(row, ivs), index(extent))
        zero = arith.constant(bf16, 0.0)
        linalg.YieldOp([arith.select(there, body.arguments[0], zero)])
    return made.results[0]


def lower(op: Op) -> None:
    """Loops over pairs of rows and vectors of columns (on buffers)."""
    source, target = op.operation.operands
    row, column = list(op.operation.attributes[MARK])  # type: ignore[call-overload]
    kind = ir.MemRefType(target.type)
    pairs, alone = divmod(ir.MemRefType(source.type).shape[row], GROUP)
    begin = 0
    for end, there in (pairs, GROUP), (pairs + alone, alone), (kind.shape[0], 0):
        if begin == end:
            continue
        weaving = Weaving(source, target, row, column, there)
        rows = scf.ForOp(index(begin), index(end), index(1))
        with ir.InsertionPoint(rows.body):
            k = rows.induction_variable
            if kind.is_dynamic_dim(1):
                weaving.masked(k, memref.dim(source, index(column)))
            else:
                weaving.whole(k, kind.shape[1] // GROUP)
            scf.yield_([])
        begin = end
    op.operation.erase()


@dataclass(frozen=True)
class Weaving:
    """What is woven into what, and which of the source's dimensions are which.

    there: rows of a pair inside the source; zeros stand for the others.
    """

    source: ir.Value
    target: ir.Value
    row: int
    column: int
    there: int

    def whole(self, pair: ir.Value, columns: int) -> None:
        """A pair of rows whose length is known."""
        whole = columns // LANES * LANES
        if whole:
            loop = scf.ForOp(index(0), index(whole), index(LANES))
            with ir.InsertionPoint(loop.body):
                self.vectors(pair, loop.induction_variable, LANES)
                scf.yield_([])
        if columns > whole:
            self.vectors(pair, index(whole), columns - whole)

    def masked(self, pair: ir.Value, columns: ir.Value) -> None:
        """A pair of rows that may end within a vector."""
        loop = scf.ForOp(index(0), columns, index(LANES))
        with ir.InsertionPoint(loop.body):
            n = loop.induction_variable
            self.vectors(pair, n, LANES, arith.subi(columns, n))
            scf.yield_([])

    def vectors(
        self, pair: ir.Value, n: ir.Value, count: int, inside: ir.Value | None = None
    ) -> None:
        """`count` columns of two rows, one number of each in turn.

        inside: how many of them are there, None for all.
        """
        bf16, i16 = ir.BF16Type.get(), ir.IntegerType.get_signless(16)
        kind = ir.VectorType.get([count], bf16)
        rank = ir.MemRefType(self.source.type).rank
        zero = arith.constant(bf16, 0.0)
        good = ir.ArrayAttr.get([ir.BoolAttr.get(True)])
        columns = ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(self.column)])
        reading = ir.AffineMapAttr.get(columns)
        lanes = ir.VectorType.get([count], i16)
        bits: list[ir.Value] = []
        for ahead in range(self.there):
            at = [index(0)] * rank
            at[self.row] = add(arith.muli(pair, index(GROUP)), index(ahead))
            at[self.column] = n
            numbers = vector.transfer_read(
                kind, self.source, at, reading, zero, good, mask=mask(count, inside)
            )
            # As integers: LLVM has no shuffle of bf16 for a number like 17 of them.
            bits.append(vector.bitcast(lanes, numbers))
        none = vector.broadcast(lanes, arith.constant(i16, 0))
        woven = vector.interleave(*bits, *[none] * (GROUP - self.there))
        made = vector.bitcast(ir.VectorType.get([GROUP * count], bf16), woven)
        last = ir.AffineMap.get(2, 0, [ir.AffineDimExpr.get(1)])
        both = None if inside is None else arith.muli(inside, index(GROUP))
        vector.TransferWriteOp(
            None,
            made,
            self.target,
            [pair, arith.muli(n, index(GROUP))],
            ir.AffineMapAttr.get(last),
            good,
            mask=mask(GROUP * count, both),
        )


def mask(count: int, inside: ir.Value | None) -> ir.Value | None:
    """The first `inside` of so many lanes, None if all of them are."""
    if inside is None:
        return None
    kind = ir.VectorType.get([count], ir.IntegerType.get_signless(1))
    return vector.create_mask(kind, [inside])
