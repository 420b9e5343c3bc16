"""Loops of which only a run knows the number of trips, as scf.while.

    while (running and i < limit): running, carried = step(i, carried); i = i + 1

What ends the loop is carried by it, as tensors: so are its body's kernels and whoever
runs them, one trip after the other, told of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nanoloom.ir.mlir import arith, ir, scf, tensor
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.carried_checks import carry
from nanoloom.linalg.builder.generic import to_body
from nanoloom.linalg.builder.indexing import INT64
from nanoloom.linalg.builder.loops import (
    FLAG,
    LIMIT,
    REPEAT,
    TRIPS,
    settled,
    tensors,
)
from nanoloom.linalg.builder.slices import index
from nanoloom.linalg.builder.tensor import Tensor

NO_END = 1 << 62  # trips: more than anyone waits for


@dataclass(frozen=True)
class End:
    """What ends a loop.

    running: whether its first trip runs; None where each does.  limit: of trips, int64.
    most: trips, as far as known; None for any number.  is_counted: its body reads the
    number of the trip.
    """

    running: Tensor | None
    limit: Tensor | None
    most: int | None
    is_counted: bool


Step = Callable[[ir.Value, Tensor, Tensor, list[Tensor]], list[Tensor]]


def until(b: Builder, end: End, carried: list[Tensor], step: Step) -> list[Tensor]:
    """The carried values behind the loop.

    step: a trip's number, as an index and as a tensor, the condition, and the carried
    values before it; gives the condition and the values behind it.
    """
    number = b.full((), 0, INT64) if end.is_counted else None
    leading = [x for x in (end.running, end.limit, number) if x is not None]
    states = [*leading, *carried]
    initial = [index(0), *[b.value(x) for x in states]]
    kinds = [value.type for value in initial]
    loop = scf.WhileOp(kinds, initial)
    before = loop.before.blocks.append(*kinds)
    with ir.InsertionPoint(before):
        i, *values = before.arguments
        scf.ConditionOp(goes_on(b, end, i, tensors(b, values, states)), [i, *values])
    after = loop.after.blocks.append(*kinds)
    with b.checks.body() as checks, ir.InsertionPoint(after):
        i, *values = after.arguments
        inside = tensors(b, values, states)
        made = trip(b, end, step, i, inside)
        scf.YieldOp([arith.addi(i, index(1)), *settled(b, made, inside)])
    made_loop = carry(b, loop.operation, checks)
    mark(made_loop, end)
    results = list(made_loop.results)
    return tensors(b, results[1 : len(kinds)], states)[len(leading) :]


def goes_on(b: Builder, end: End, i: ir.Value, states: list[Tensor]) -> ir.Value:
    """Whether a trip runs, i1."""
    given = iter(states)
    found: list[ir.Value] = []
    if end.running is not None:
        found.append(element(b, next(given)))
    limits: list[ir.Value] = []
    if end.limit is not None:
        limits.append(arith.index_cast(ir.IndexType.get(), element(b, next(given))))
    if end.most is not None:
        limits.append(index(end.most))
    found += [arith.cmpi(arith.CmpIPredicate.slt, i, limit) for limit in limits]
    first, *others = found
    for other in others:
        first = arith.andi(first, other)
    return first


def trip(
    b: Builder, end: End, step: Step, i: ir.Value, inside: list[Tensor]
) -> list[Tensor]:
    """What a trip leaves: what ends the loop, then the values that it carries."""
    count = sum((end.running is not None, end.limit is not None, end.is_counted))
    leading, states = inside[:count], inside[count:]
    number = leading[-1] if end.is_counted else b.full((), 0, INT64)
    condition = b.full((), True, np.dtype(np.bool_))
    condition = leading[0] if end.running is not None else condition
    after, *made = step(i, number, condition, states)
    left: list[Tensor] = []
    if end.running is not None:
        left.append(b.reshape(after, condition.shape))
    if end.limit is not None:
        left.append(leading[len(left)])
    if end.is_counted:
        left.append(b.elementwise(lambda n: n + 1, number))
    return [*left, *made]


def mark(loop: ir.Operation, end: End) -> None:
    """Say what ends the loop to whom makes kernels of its body."""
    wide = ir.IntegerType.get_signless(64)
    most = NO_END if end.most is None else end.most
    loop.attributes[REPEAT] = ir.BoolAttr.get(False)
    loop.attributes[TRIPS] = ir.IntegerAttr.get(wide, most)
    if end.running is not None:
        loop.attributes[FLAG] = ir.IntegerAttr.get(wide, 0)
    if end.limit is not None:
        number = int(end.running is not None)
        loop.attributes[LIMIT] = ir.IntegerAttr.get(wide, number)


def element(b: Builder, x: Tensor) -> ir.Value:
    """The one element of a tensor, outside any body: i1 for bool."""
    value = tensor.extract(b.value(x), [index(0)] * x.rank)
    return to_body(value, x.dtype).value
