"""What a product's kernel makes and another product rounds is in bf16 for everybody.

    r = relu(product + x)          r = bf16(relu(product + x))
    next product of bf16(r)   ->   next product of r
    r + another product            f32(r) + another product

A product's kernel writes one tensor.  Kept in f32 for a residual sum, r would be
written by it, read, and written once more in half the bytes.
"""

from __future__ import annotations

from nanoloom.fusion.recompute_in_readers import may_widen
from nanoloom.ir.contraction import comes_from_product
from nanoloom.ir.linalg_query import inputs, is_generic
from nanoloom.ir.mlir import arith, ir, tensor
from nanoloom.kernels.retype.retyped import Retyped
from nanoloom.linalg.builder.pointwise import pointwise


def round_once(narrow: Retyped) -> None:
    """Give those who read an activation in f32, too, the rounded numbers.

    narrow: bf16, with all products of a module in it.
    """
    for value, low in list(narrow.made.items()):
        if not (value in narrow.exact or comes_from_product(value)):
            continue
        conversion = low.owner
        others = [
            use
            for use in value.uses
            if use.owner != conversion and not is_unread(use.owner)
        ]
        if converts(conversion, value) and others and all(map(may_widen, others)):
            read_wide(low, others)


def converts(operation: ir.Operation, value: ir.Value) -> bool:
    """Whether an operation rounds a value, and puts it nowhere."""
    op = operation.opview
    return is_generic(op) and inputs(op) == [value]


def is_unread(operation: ir.Operation) -> bool:
    """Whether nothing needs an operation, as a border around what is f32 no more."""
    uses = [use for result in operation.results for use in result.uses]
    ends = operation.name == "func.return"
    return not ends and all(is_unread(use.owner) for use in uses)


def read_wide(low: ir.Value, uses: list[ir.OpOperand]) -> None:
    """Let operands be bf16 numbers, made f32 again where they are read."""
    places = [(use.owner, use.operand_number) for use in uses]
    with ir.InsertionPoint.after(low.owner), low.owner.location:
        f32 = ir.F32Type.get()
        target = tensor.empty(ir.RankedTensorType(low.type).shape, f32)
        wide = pointwise([low], target, lambda number: arith.extf(f32, number))
    for operation, number in places:
        operation.operands[number] = wide
