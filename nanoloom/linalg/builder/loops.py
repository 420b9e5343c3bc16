"""Sequential loops over tensors: what is carried is settled in one place of memory.

Bufferization wants a loop to yield the buffer it was given.  A value computed afresh in
the loop is therefore materialized in the carried one; a value that is the carried one
with parts written (`places.write`) already is that buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nanoloom.ir.mlir import bufferization, ir, scf
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.carried_checks import carry
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.slices import index
from nanoloom.linalg.builder.tensor import Tensor

Step = Callable[[ir.Value, list[Tensor]], Sequence[Tensor]]
# On an scf.for or scf.while: its body is to be kernels of its own, not a part of one.
# True where it may run at the same time as the one in front of it.
REPEAT = "nanoloom.repeat"
# On such an scf.while: how many trips it has at most, and which of the values that it
# carries end it before: a flag (bool), a limit of trips (int64).
TRIPS, FLAG, LIMIT = "nanoloom.trips", "nanoloom.flag", "nanoloom.limit"
WRITES = ("tensor.insert_slice", "tensor.insert", "scf.for", "scf.while")
FIRST = {"scf.for": 3, "scf.while": 0}  # operand of a loop that is carried
# What gives the same memory in another shape, or a part of it.
VIEWS = (
    "tensor.cast", "tensor.collapse_shape", "tensor.expand_shape",
    "tensor.extract_slice",
)  # fmt: skip


def repeat(
    b: Builder,
    trips: ir.Value | int,
    carried: Sequence[Tensor],
    step: Step,
    *,
    in_kernels: bool = False,
    beside: bool = False,
) -> list[Tensor]:
    """carried = step(i, carried) for i in 0 .. trips, as scf.for; shapes stay.

    in_kernels: a step is large enough for kernels of its own.  beside: it reads nothing
    of the loop in front of it, and writes nothing that one reads or writes.

    One trip is no loop: canonicalization would inline it, and two initial values that
    are equal would then be one buffer to settle two results in.
    """
    if isinstance(trips, int) and trips <= 1:
        return list(step(index(0), list(carried))) if trips == 1 else list(carried)
    last = index(trips) if isinstance(trips, int) else trips
    loop = scf.ForOp(index(0), last, index(1), [b.value(x) for x in carried])
    with b.checks.body() as checks, ir.InsertionPoint(loop.body):
        inside = tensors(b, loop.inner_iter_args, carried)
        made = step(loop.induction_variable, inside)
        scf.YieldOp(settled(b, made, inside))
    made_loop = carry(b, loop.operation, checks)
    if in_kernels:
        made_loop.attributes[REPEAT] = ir.BoolAttr.get(beside)
    results = list(made_loop.results)
    return tensors(b, results[: len(carried)], carried)


def repeat_while(
    b: Builder,
    carried: Sequence[Tensor],
    goes_on: Callable[[list[Tensor]], Scalar],
    step: Callable[[list[Tensor]], Sequence[Tensor]],
) -> list[Tensor]:
    """carried = step(carried) as long as goes_on(carried), as scf.while."""
    initial = [b.value(x) for x in carried]
    kinds = [value.type for value in initial]
    loop = scf.WhileOp(kinds, initial)
    before = loop.before.blocks.append(*kinds)
    with ir.InsertionPoint(before):
        found = goes_on(tensors(b, list(before.arguments), carried))
        scf.ConditionOp(found.value, list(before.arguments))
    after = loop.after.blocks.append(*kinds)
    with ir.InsertionPoint(after):
        inside = tensors(b, list(after.arguments), carried)
        scf.YieldOp(settled(b, step(inside), inside))
    return tensors(b, list(loop.results), carried)


def tensors(
    b: Builder, values: Sequence[ir.Value], like: Sequence[Tensor]
) -> list[Tensor]:
    return [b.tensor(v, x.dtype) for v, x in zip(values, like, strict=True)]


def settled(
    b: Builder, made: Sequence[Tensor], carried: Sequence[Tensor]
) -> list[ir.Value]:
    """The new values in the memory of the old ones."""
    return [
        settle(b.value(new), b.value(old))
        for new, old in zip(made, carried, strict=True)
    ]


def settle(new: ir.Value, old: ir.Value) -> ir.Value:
    if written_into(new) == old:
        return new
    return bufferization.MaterializeInDestinationOp(new.type, new, old).result


def written_into(value: ir.Value) -> ir.Value:
    """The tensor that a chain of writes began with.

    The chain ends at a tensor whose old numbers are wanted behind a write, which is
    into a copy then.  Bufferization makes it, but not in front of a loop.
    """
    while (number := carried_operand(value)) is not None:
        op = value.owner.operation
        begun = op.operands[number]
        if is_read_behind(begun, op, number):
            if op.name in FIRST:
                op.operands[number] = copied(begun, op)
            return value
        value = begun
    return value


def carried_operand(value: ir.Value) -> int | None:
    """Which operand of what makes a value it is written into; None if into none."""
    if isinstance(value.owner, ir.Block) or value.owner.name not in WRITES:
        return None
    op = value.owner.operation
    return FIRST[op.name] + list(op.results).index(value) if op.name in FIRST else 1


def copied(value: ir.Value, before: ir.Operation) -> ir.Value:
    """A tensor's numbers in memory of their own.

    No tensor.empty: where the loop's result is settled in `value`, MLIR would take that
    for it (eliminate-empty-tensors).
    """
    with ir.InsertionPoint(before):
        return bufferization.AllocTensorOp(value.type, [], copy=value).result


def is_read_behind(value: ir.Value, write: ir.Operation, number: int) -> bool:
    """Whether a value, or a view of it, is read where a write has been, or within it.

    number: of the write's operands, the one that it writes into.
    """
    for use in value.uses:
        user = use.owner.operation
        if user == write:
            if use.operand_number != number:
                return True
            continue
        while user.block != write.block:
            if user.parent is None:
                return True  # the value is of a block around the write's
            user = user.parent.operation
        if user == write or write.is_before_in_block(user):
            return True
        views = user.results if user.name in VIEWS else ()
        if any(is_read_behind(view, write, -1) for view in views):
            return True
    return False
