"""Tasks of an extent that only a run knows, as alike as can be.

    forall i in 0 to n by 112: rows = min(112, n - i)   of 128 rows 112, 16
    forall i in 0 to n by 112: begin, rows = even steps     64, 64

Threads share tasks by their number: of two that get as many, one would have nearly all
of the work.  Schedules see to that themselves where extents are known (row_block.py).
"""

from __future__ import annotations

from math import gcd

from nanoloom.ir.mlir import ir
from nanoloom.vector.nanokernel.balanced_tiles import Span, counts_of, in_balanced_steps
from nanoloom.vector.tasks import bounds_of, top_loops

# Elements along a row in memory that stay together: a cache line of the narrowest.
LINE = 64
# What makes a place of a place, whichever it is.
MOVES = ("affine.apply", "arith.addi", "arith.muli")
READS = ("memref.load", "memref.prefetch", "vector.load", "vector.transfer_read")
WRITES = ("memref.store", "vector.store", "vector.transfer_write")


def balance_tasks(module: ir.Module) -> None:
    """Even steps for each loop over tasks that goes by a number to any extent, where
    nothing in it depends on where its steps begin."""
    for loop in top_loops(module.body.operations[0]):
        block = loop.operation.regions[0].blocks[0]
        for place, lower, end, step in zip(
            block.arguments, *bounds_of(loop), strict=True
        ):
            if lower != 0 or isinstance(end, int) or not isinstance(step, int):
                continue
            span = Span(loop.operation, block, place, end, step)
            counts = list(counts_of(span))
            unit = unit_of(place, counts)
            if step > 1 and counts and unit:
                in_balanced_steps(span, counts, gcd(step, unit))


def unit_of(place: ir.Value, counts: list[ir.Operation]) -> int:
    """How many points stay together: 1, or a line of those along a row in memory; 0
    where something asks of a place what its step is.

    A place that is compared, or is the end of a loop or of a mask, may stand for that.
    """
    unit = 1
    for use in place.uses:
        op, number = use.owner.operation, use.operand_number
        if op in counts:
            continue
        if op.name in MOVES:
            found = unit_of(op.results[0], counts)
        else:
            found = unit_of_access(op, number)
        if not found:
            return 0
        unit = max(unit, found)
    return unit


def unit_of_access(op: ir.Operation, number: int) -> int:
    """The same of a view, a load or a store, of which it is an operand."""
    if op.name == "memref.subview":
        first, last = 1, int(op.attributes["operandSegmentSizes"][1])  # type: ignore[index] - MLIR's stubs know no kinds of attributes
        offsets = ir.DenseI64ArrayAttr(op.attributes["static_offsets"])
        dynamic = [n for n, x in enumerate(offsets) if x < 0]
        if not first <= number <= last:
            return 0
        return LINE if dynamic[number - first] == len(offsets) - 1 else 1
    if op.name not in READS + WRITES:
        return 0
    base = int(op.name in WRITES)  # the buffer's number
    rank = ir.MemRefType(op.operands[base].type).rank
    if not base < number <= base + rank or not is_inside(op):
        return 0
    return LINE if number == base + rank else 1


def is_inside(op: ir.Operation) -> bool:
    """Whether a transfer ends within its buffer, not where that does."""
    if "in_bounds" not in op.attributes:
        return True
    return all(x.value for x in ir.ArrayAttr(op.attributes["in_bounds"]))  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
