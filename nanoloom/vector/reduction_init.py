"""Sums that start from a number do not read it.

    fill(0, c); c[i] += a[i, k]  ->  c[i] = 0 + a[i, 0] + a[i, 1] + ...

A fill right in front of what adds to it would write a buffer only to be read again.
"""

from __future__ import annotations

from nanoloom.ir.linalg_query import (
    filled_with,
    input_count,
    iterators,
    map_dims,
    maps,
    yielded,
)
from nanoloom.ir.mlir import ir, made_by

SAME = ("memref.subview", "memref.cast", "memref.collapse_shape",
        "memref.expand_shape", "memref.reinterpret_cast")  # fmt: skip
HARMLESS = ("arith.", "affine.", "memref.alloc", "memref.dim", *SAME)


def fill_of(op: ir.OpView, output: int) -> ir.OpView | None:
    """The fill of an output in front of a sum, if nothing else needs it."""
    operand = input_count(op) + output
    buffer, dims = op.operation.operands[operand], map_dims(maps(op)[operand])
    whole = None not in dims and len(set(dims)) == len(dims)
    if not whole or "reduction" not in iterators(op):
        return None
    before = list(op.operation.block.operations)
    for other in reversed(before[: before.index(op)]):
        if is_fill(other) and other.operation.operands[0] == buffer:
            return other
        if other.operation.name.startswith(HARMLESS):
            continue
        if other.operation.name != "linalg.generic":
            return None
        if root(buffer) in [root(value) for value in other.operation.operands]:
            return None
    return None


def number_of(fill: ir.OpView) -> ir.Value:
    """What a fill writes, made again here."""
    return filled_with(fill).clone().results[0]


def is_fill(op: ir.OpView) -> bool:
    """Whether an operation on buffers writes one number everywhere."""
    if op.operation.name != "linalg.generic" or len(op.operation.operands) != 1:
        return False
    return made_by(yielded(op)[0], "arith.constant") is not None


def root(buffer: ir.Value) -> ir.Value:
    """What a buffer is a part of."""
    owner = made_by(buffer, *SAME)
    return buffer if owner is None else root(owner.operands[0])
