"""The checks of a loop's or a branch's body leave it as more results of the operation.

How many there are is known when the body is written: the operation is then made again
with more results around the same body.
"""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.ir.mlir import bufferization, ir
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.checks import UINT64, Check
from nanoloom.linalg.builder.tensor import Tensor


def carry(b: Builder, loop: ir.Operation, checks: Sequence[Check]) -> ir.Operation:
    """An scf.for or scf.while that carries the words of its body's checks.

    The word of all trips is the largest.  Gives the loop to take the results from.
    """
    if not checks:
        return loop
    words = [check.words for check in checks]
    for region in loop.regions:
        block = region.blocks[0]
        sofar = [
            b.tensor(block.add_argument(b.value(x).type, loop.location), UINT64)
            for x in words
        ]
        end = list(block.operations)[-1].operation
        with ir.InsertionPoint(end):
            passed = [b.value(x) for x in sofar]  # what scf.condition hands on
            if end.name == "scf.yield":
                passed = [
                    worse_check(b, x, y) for x, y in zip(sofar, words, strict=True)
                ]
            longer(end, passed)
    with ir.InsertionPoint(loop):
        starts = [b.value(b.full(x.shape, 0, UINT64)) for x in words]
    return rebuilt(b, loop, starts, checks)


def branch_out(
    b: Builder, branch: ir.Operation, checks: Sequence[Sequence[Check]]
) -> ir.Operation:
    """An scf.if that gives the words of both sides' checks: 0 for the one not taken."""
    if not any(checks):
        return branch
    for side, region in enumerate(branch.regions):
        end = list(region.blocks[0].operations)[-1].operation
        with ir.InsertionPoint(end):
            words = [
                x.words if side == other else b.full(x.words.shape, 0, UINT64)
                for other, made in enumerate(checks)
                for x in made
            ]
            longer(end, [b.value(x) for x in words])
    return rebuilt(b, branch, [], [x for made in checks for x in made])


def worse_check(b: Builder, sofar: Tensor, words: Tensor) -> ir.Value:
    """The larger words, in the memory of those so far."""
    made = b.value(b.elementwise(lambda x, y: x.maximum(y), sofar, words))
    into = b.value(sofar)
    return bufferization.MaterializeInDestinationOp(made.type, made, into).result


def longer(end: ir.Operation, values: Sequence[ir.Value]) -> None:
    """The end of a body with more operands."""
    made = ir.Operation.create(end.name, [], [*end.operands, *values])
    made.move_before(end)
    end.erase()


def rebuilt(
    b: Builder, op: ir.Operation, operands: Sequence[ir.Value], checks: Sequence[Check]
) -> ir.Operation:
    """The operation with more operands and results; nobody uses the old ones yet."""
    kinds = [r.type for r in op.results] + [b.value(x.words).type for x in checks]
    with ir.InsertionPoint(op):
        made = ir.Operation.create(
            op.name, kinds, [*op.operands, *operands], regions=len(op.regions)
        )
    for old, new in zip(op.regions, made.regions, strict=True):
        old.blocks[0].append_to(new)
    first = len(op.results)
    op.erase()
    for value, check in zip(list(made.results)[first:], checks, strict=True):
        b.checks.made.append(Check(b.tensor(value, UINT64), check.limits))
    return made
