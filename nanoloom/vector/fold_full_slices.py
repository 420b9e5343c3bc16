"""Slices of tensors with sizes: MLIR does not see that one is all of its tensor.

It knows two numbers for equal, and not that two arguments have as many rows.
"""

from __future__ import annotations

from typing import TypeAlias

from nanoloom.dynamic.dynamic_kernel import ARGUMENT, EXTENTS, NUMBER
from nanoloom.ir.access import constant_of
from nanoloom.ir.mlir import ir, named
from nanoloom.linalg.builder.tensor_slices import bounds_of

DYNAMIC = ir.ShapedType.get_dynamic_size()
Extent: TypeAlias = int | str | None  # a number, the name of a size; None if unknown


def fold_full_slices(function: ir.OpView) -> None:
    """A slice that takes all of a tensor is the tensor; one put over all of it, too."""
    if ARGUMENT not in function.operation.attributes:
        return
    for op in named(function, "tensor.extract_slice", "tensor.insert_slice"):
        into = op.operation.name == "tensor.insert_slice"
        source, whole = op.operation.operands[0], op.operation.operands[int(into)]
        if source.type == op.operation.results[0].type and is_full_slice(op, whole):
            op.operation.results[0].replace_all_uses_with(source)
            op.operation.erase()


def is_full_slice(op: ir.OpView, whole: ir.Value) -> bool:
    (offsets, sizes), words = bounds_of(op.operation), op.operation.attributes
    steps = ir.DenseI64ArrayAttr(words["static_strides"])
    if offsets != [0] * len(offsets) or any(step != 1 for step in steps):
        return False
    wanted = [named_size(n) if isinstance(n, ir.Value) else n for n in sizes]
    return all(n is not None for n in wanted) and wanted == [
        extent(whole, place) for place in range(len(wanted))
    ]


def named_size(value: ir.Value) -> Extent:
    """What a value of type index is."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    if owner.name == "tensor.dim":
        place = constant_of(owner.operands[1])
        return None if place is None else extent(owner.operands[0], place)
    if owner.name == "arith.constant":
        return constant_of(value)
    if owner.name == "arith.index_cast":
        read = owner.operands[0].owner
        if not isinstance(read, ir.Block) and read.name == "tensor.extract":
            return f"size {constant_of(read.operands[1])}"
    return None


def extent(value: ir.Value, place: int) -> Extent:
    """How far an axis of a tensor goes."""
    known = ir.RankedTensorType(value.type).shape[place]
    if known != DYNAMIC:
        return known
    owner = value.owner
    if isinstance(owner, ir.Block):
        function = owner.owner
        if function.operation.name != "func.func":
            return None
        rows = function.operation.attributes[EXTENTS]
        number = rows[ir.BlockArgument(value).arg_number][place]  # type: ignore[index] - MLIR's stubs know no kinds of attributes
        return None if number == NUMBER else f"size {number}"
    if owner.name == "linalg.generic":
        count = len(owner.results)
        result = list(owner.results).index(value)
        return extent(list(owner.operands)[-count:][result], place)
    if owner.name == "tensor.empty":
        before = ir.RankedTensorType(value.type).shape[:place].count(DYNAMIC)
        return named_size(owner.operands[before])
    if owner.name == "tensor.insert_slice":
        return extent(owner.operands[1], place)
    return None
