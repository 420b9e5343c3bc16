"""Sums in a buffer of their own: what "nanoloom.private_accumulator" does."""

from __future__ import annotations

from nanoloom.errors import Error
from nanoloom.ir.linalg_query import Op, is_fill, is_generic, outputs
from nanoloom.ir.loop_nest import STAGE
from nanoloom.ir.mlir import arith, ir, made_by, tensor
from nanoloom.linalg.builder.pointwise import pointwise
from nanoloom.schedule.language import RESULT


def use_private_accumulator(root: Op) -> None:
    """Let an operation of its own write the result, so that the sums lie elsewhere.

    It has an operand that it does not read: what only copies is erased.
    Raises Error unless the sums start from a number.
    """
    fill = filled(root)
    sums = root.operation.results[0]
    kind = ir.RankedTensorType(sums.type)
    result = fill.operands[0]
    with ir.InsertionPoint(fill), root.operation.location:
        fill.operands[0] = tensor.empty(kind.shape, kind.element_type)
    readers = [use.owner.operation for use in sums.uses]
    with ir.InsertionPoint.after(root), root.operation.location:
        whole = isinstance(kind.element_type, ir.IntegerType)
        unread = arith.constant(kind.element_type, 0 if whole else 0.0)
        same = ir.AffineMap.get_identity(kind.rank)
        nothing = ir.AffineMap.get(kind.rank, 0, [])
        copied = pointwise([sums, unread], result, lambda x, _: x, [same, nothing])
    for reader in readers:
        reader.replace_uses_of_with(sums, copied)
    owner = made_by(copied)
    assert owner is not None, "an operation was made"
    owner.attributes[STAGE] = ir.StringAttr.get(RESULT)


def filled(root: Op) -> ir.Operation:
    """The fill under a stage's sums."""
    if is_generic(root) and len(list(root.operation.results)) == 1:
        owner = made_by(outputs(root)[0])
        if owner is not None and is_fill(owner.opview):
            return owner
    raise Error("only sums that start from a number can be stored apart")
