"""Stores under a mask that is mostly whole, without mask registers.

    masked store [count]  ->  if count >= lanes: store
                              else: masked store [count]

A tile over the result's edge asks at each of its rows and columns what is inside, and
so do all the tiles before it in the same loop.  To store a register in part takes ten
to twenty cycles where memory has to be told lane by lane (vmaskmovps on AMD's Zen): as
long as all of a short sum.  The branch costs nothing, it is nearly always the same.
"""

from __future__ import annotations

from nanoloom.ir.access import constant_of, index
from nanoloom.ir.mlir import arith, ir, made_by, named, vector
from nanoloom.vector.emit_loops import emit_branch

WRITE, MASK = "vector.transfer_write", "vector.create_mask"


def store_unmasked(module: ir.Module) -> None:
    """On buffers: a branch around every store whose mask is known as the tile runs."""
    for op in named(module, WRITE):
        count = lanes_inside(op)
        if count is not None:
            with ir.InsertionPoint(op), op.operation.location:
                branch(op.operation, count)
            op.operation.erase()


def lanes_inside(op: ir.OpView) -> ir.Value | None:
    """How many lanes a store writes, None for all of them or a constant number."""
    assert isinstance(op, vector.TransferWriteOp)
    made = made_by(op.mask, MASK) if op.mask is not None else None
    count = None if made is None else made.operands[0]
    return None if count is None or constant_of(count) is not None else count


def branch(store: ir.Operation, count: ir.Value) -> None:
    """Either a whole store, or the one in part."""
    op = store.opview
    assert isinstance(op, vector.TransferWriteOp)
    (lanes,) = ir.VectorType(op.valueToStore.type).shape
    whole = arith.cmpi(arith.CmpIPredicate.sge, count, index(lanes))
    words = op.base, op.indices, op.permutation_map, op.in_bounds

    def unmasked() -> None:
        vector.TransferWriteOp(None, op.valueToStore, *words)

    def masked() -> None:
        store.clone()

    emit_branch(whole, unmasked, masked)
