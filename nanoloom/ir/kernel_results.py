"""What a kernel returns: values of its own, whole or as parts of larger tensors."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from nanoloom.ir.linalg_query import Op, base
from nanoloom.ir.mlir import ir


def results_of(kernel: Op) -> Iterator[tuple[ir.Value, bool]]:
    """Each value that a kernel computes for its caller, and whether its innermost
    elements lie apart in memory: those of a column of a matrix."""
    block = kernel.operation.regions[0].blocks[0]
    for value in list(block.operations)[-1].operation.operands:
        yield from parts_of(value)


def parts_of(value: ir.Value) -> Iterator[tuple[ir.Value, bool]]:
    """What a result consists of: itself, or what is inserted into it."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "tensor.insert_slice":
        yield value, False
        return
    into = owner.operands[1]
    if not isinstance(into.owner, ir.Block):
        yield from parts_of(into)
    yield base(owner.operands[0]), lies_apart(owner)


def lies_apart(insertion: ir.Operation) -> bool:
    """Whether a part takes one element of its tensor's last axis, or of several."""
    sizes = list(insertion.attributes["static_sizes"])  # type: ignore[arg-type] - MLIR's stubs know no kinds of attributes
    whole = ir.RankedTensorType(insertion.operands[1].type).shape
    while sizes and sizes[-1] == 1:
        sizes.pop()
    return bool(sizes) and prod(whole[len(sizes) :]) != 1
