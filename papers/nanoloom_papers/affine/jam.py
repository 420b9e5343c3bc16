"""Steps of a loop beside each other in the loops further in: unroll and jam.

    for i in 0..9:                  for i in 0..8 by 2:
      for k (s = 0): s + a[i, k]      for k (s, t = 0): s + a[i, k], t + a[i + 1, k]
                              ->    for i in 8..9:
                                      for k (s = 0): s + a[i, k]

What the steps read in common is read once, behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.ir.mlir import ir, operations
from nanoloom_papers.affine.build import (
    begin_at,
    body_of,
    bounds_of,
    copied,
    drop_if_done,
    index_of_loop,
    loop_like,
    shifted,
    steps_of,
    yield_values,
    yielded,
)
from nanoloom_papers.affine.carrier import FOR, initial_values
from nanoloom_papers.affine.location import is_inside

Values = dict["ir.Value", "ir.Value"]


def jam(loop: ir.Operation, count: int) -> None:
    """So many steps of a parallel loop at once; those left over stay one by one.

    Nothing changes in a loop whose bounds are no numbers, or that has loops further in
    whose bounds depend on it.
    """
    bounds = bounds_of(loop)
    if bounds is None or count < 2 or not is_jammable(loop):
        return
    low, high = bounds
    end = low + (high - low) // count * count
    if end == low:
        return
    with ir.InsertionPoint(loop), loop.location:
        _, block = loop_like(loop, [], (low, end), count)
        with ir.InsertionPoint(block):
            copies: list[Values] = [
                {index_of_loop(loop): shifted(block.arguments[0], number)}
                for number in range(count)
            ]
            emit(steps_of(body_of(loop)), copies)
        yield_values(block, [])
    begin_at(loop, end)
    drop_if_done(loop)


def is_jammable(loop: ir.Operation) -> bool:
    """Whether a loop carries nothing, and those in it run as often in each step."""
    if initial_values(loop):
        return False
    for op in [op.operation for op in operations(loop, lambda _: True)][1:]:
        if op.name == FOR:
            heads = len(list(op.operands)) - len(initial_values(op))
            if any(is_inside(value, loop) for value in list(op.operands)[:heads]):
                return False
        elif list(op.regions):
            return False
    return True


def emit(ops: Sequence[ir.Operation], copies: list[Values]) -> None:
    """Operations for each copy, one operation after the other."""
    for op in ops:
        if op.name == FOR:
            emit_loop(op, copies)
        else:
            for values in copies:
                copied(op, values)


def emit_loop(op: ir.Operation, copies: list[Values]) -> None:
    """One loop further in for all copies, which carries what each of them does."""
    first = [v.get(value, value) for v in copies for value in initial_values(op)]
    made, block = loop_like(op, first)
    old = body_of(op)
    counter, *carried = block.arguments
    own = len(list(op.results))
    for number, values in enumerate(copies):
        values[index_of_loop(op)] = counter
        given = carried[number * own : (number + 1) * own]
        values |= dict(zip(list(old.arguments)[1:], given, strict=True))
    with ir.InsertionPoint(block):
        emit(steps_of(old), copies)
    yield_values(block, [v.get(value, value) for v in copies for value in yielded(old)])
    results = list(made.results)
    for number, values in enumerate(copies):
        given = results[number * own : (number + 1) * own]
        values |= dict(zip(op.results, given, strict=True))
