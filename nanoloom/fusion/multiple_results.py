"""Several results of a kernel: its last stage writes them all.

    s = x + y; n = f(s)  ->  t = x + y; (n, s) = (f(t), t)

A schedule then has one stage to make tasks of, whose results no two tasks share, and
what the others make stays in the memory of a task.
"""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.ir.linalg_query import (
    Op,
    body,
    extents,
    inputs,
    is_generic,
    is_identity,
    iterators,
    maps,
    outputs,
)
from nanoloom.ir.make_generic import make_generic
from nanoloom.ir.mlir import ir, linalg, tensor
from nanoloom.ir.statement_names import AXES, NAME


def can_pass(last: Op, value: ir.Value) -> bool:
    """Whether an operation's loops go once over each place of a value."""
    if not is_generic(last) or "reduction" in iterators(last):
        return False
    if not all(map(is_identity, maps(last)[len(inputs(last)) :])):
        return False
    return list(ir.RankedTensorType(value.type).shape) == extents(last)


def passing(last: Op, values: Sequence[ir.Value]) -> list[ir.Value]:
    """The results of a generic that writes these values, too, behind its own.

    The generic, whose results nothing reads, is gone.
    """
    same = [ir.AffineMap.get_identity(len(iterators(last)))] * len(values)
    read, written = maps(last)[: len(inputs(last))], maps(last)[len(inputs(last)) :]
    kinds = [ir.RankedTensorType(value.type) for value in values]
    with ir.InsertionPoint(last), last.operation.location:
        made = make_generic(
            [*inputs(last), *values],
            [*outputs(last), *(tensor.empty(k.shape, k.element_type) for k in kinds)],
            [*read, *same, *written, *same],
            iterators(last),
        )
    for word in (NAME, AXES):
        if word in last.operation.attributes:
            made.operation.attributes[word] = last.operation.attributes[word]
    move_body(last, made, len(read), len(values))
    last.operation.erase()
    return list(made.operation.results)


def move_body(last: Op, made: Op, before: int, count: int) -> None:
    """A generic's body into another, which reads `count` operands more behind `before`.

    Each of those is yielded as it is.
    """
    block = body(made)
    arguments = list(block.arguments)
    passed = arguments[before : before + count]
    others = [a for a in arguments[: len(arguments) - count] if a not in passed]
    *inner, end = list(body(last).operations)
    for argument, new in zip(body(last).arguments, others, strict=True):
        argument.replace_all_uses_with(new)
    with ir.InsertionPoint(block), last.operation.location:
        stop = linalg.YieldOp([*end.operands, *passed])
    for op in inner:
        op.operation.move_before(stop.operation)
