"""Loops over tensors that carry numbers in registers, too; within other loops only.

A step yields the tensors it was given, with elements written: nothing is settled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nanoloom.ir.mlir import ir, scf
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.loops import tensors
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.slices import index
from nanoloom.linalg.builder.tensor import Tensor

State = tuple[Sequence[Tensor], Sequence[Scalar]]
Step = Callable[[list[Tensor], list[Scalar]], State]


def repeat(
    b: Builder,
    trips: ir.Value,
    start: State,
    step: Callable[[ir.Value, list[Tensor], list[Scalar]], State],
    *,
    by: int = 1,
) -> tuple[list[Tensor], list[Scalar]]:
    """state = step(i, *state) for i in 0 .. trips, each `by` more than the last."""
    loop = scf.ForOp(index(0), trips, index(by), values(b, start))
    with ir.InsertionPoint(loop.body):
        inside = state(b, list(loop.inner_iter_args), start)
        scf.YieldOp(values(b, step(loop.induction_variable, *inside)))
    return state(b, list(loop.results), start)


def repeat_while(
    b: Builder,
    start: State,
    goes_on: Callable[[list[Tensor], list[Scalar]], Scalar],
    step: Step,
) -> tuple[list[Tensor], list[Scalar]]:
    """state = step(*state) as long as goes_on(*state)."""
    initial = values(b, start)
    kinds = [value.type for value in initial]
    loop = scf.WhileOp(kinds, initial)
    before = loop.before.blocks.append(*kinds)
    with ir.InsertionPoint(before):
        found = goes_on(*state(b, list(before.arguments), start))
        scf.ConditionOp(found.value, list(before.arguments))
    after = loop.after.blocks.append(*kinds)
    with ir.InsertionPoint(after):
        inside = state(b, list(after.arguments), start)
        scf.YieldOp(values(b, step(*inside)))
    return state(b, list(loop.results), start)


def when(
    b: Builder, condition: Scalar, start: State, step: Step
) -> tuple[list[Tensor], list[Scalar]]:
    """step(*state) where a condition holds, and the state as it is otherwise."""
    given = values(b, start)
    kinds = [value.type for value in given]
    branch = scf.IfOp(condition.value, kinds, has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp(values(b, step(list(start[0]), list(start[1]))))
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp(given)
    return state(b, list(branch.results), start)


def values(b: Builder, given: State) -> list[ir.Value]:
    return [*map(b.value, given[0]), *[x.value for x in given[1]]]


def state(
    b: Builder, found: Sequence[ir.Value], like: State
) -> tuple[list[Tensor], list[Scalar]]:
    count = len(like[0])
    numbers = zip(found[count:], like[1], strict=True)
    made = [Scalar(value, x.dtype) for value, x in numbers]
    return tensors(b, found[:count], like[0]), made
