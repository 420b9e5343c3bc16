"""Software prefetch of what a nanokernel streams: packed panels of weights.

The hardware fetches a panel from the second-level cache only behind the loads; asking
for the lines of a later step in time keeps the multiply-adds fed.
"""

from __future__ import annotations

from nanoloom.mlir import ir, memref, named
from nanoloom.vector.access import add, index

STEPS = 8  # steps of the innermost reduction loop: 96 cycles of a 6x4 register tile


def insert_prefetches(module: ir.Module) -> None:
    """In front of every panel read in a loop (on buffers): the same, STEPS later."""
    kernel = module.body.operations[0]
    block = kernel.operation.regions[0].blocks[0]
    for op in named(module, "vector.transfer_read"):
        buffer = op.operation.operands[0]
        rank = ir.MemRefType(buffer.type).rank
        if buffer not in list(block.arguments) or rank < 3:
            continue
        at = list(op.operation.operands)[1 : 1 + rank]
        step = at[-2].owner
        if not isinstance(step, ir.Block) or step == block:
            continue
        with ir.InsertionPoint(op), op.operation.location:
            at[-2] = add(at[-2], index(STEPS))
            memref.PrefetchOp(buffer, at, False, 3, True)
