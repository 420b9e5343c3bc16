"""What a task has of a right operand: its part, outside of the loops over tiles."""

from __future__ import annotations

from nanoloom.errors import Error
from nanoloom.ir.linalg_query import Op, inputs, map_dims, maps
from nanoloom.ir.mlir import bufferization, ir, is_inside, made_by
from nanoloom.linalg.builder.tensor_slices import bounds_of
from nanoloom.nest.contraction import Contraction
from nanoloom.schedule.directives.prefetch import LEVELS
from nanoloom.schedule.language import Prefetch
from nanoloom.vector.nanokernel.tile.tile import plus


def at_task(op: Op, shape: Contraction) -> tuple[ir.Value, ir.Value | int]:
    """The right operand as the task sees it, and the tile's first column in it."""
    value = inputs(op)[shape.right]
    dims = map_dims(maps(op)[shape.right])
    offset: ir.Value | int = 0
    outer = whole_loops(op)
    while (owner := made_by(value, "tensor.extract_slice")) is not None:
        if in_task(owner):
            break
        if not any(is_within(operand, outer) for operand in owner.operands):
            owner.move_before(outer)
            break
        offset = plus(offset, bounds_of(owner)[0][dims.index(shape.column)])
        value = owner.operands[0]
    extents = ir.RankedTensorType(value.type).shape
    if any(extents[dims.index(d)] != 1 for d in shape.shared):
        raise Error(
            "a nanokernel wants one right operand in a task, cut outside of loops"
        )
    return value, offset


def whole_loops(op: Op) -> ir.Operation:
    """The operation of the task's own that an operation stands in, or is."""
    outer = op.operation
    while not in_task(outer):
        parent = outer.parent
        assert parent is not None
        outer = parent.operation
    return outer


def is_within(value: ir.Value, outer: ir.Operation) -> bool:
    """Whether a value is made inside of an operation."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        around = owner.owner.operation
        return around == outer or is_inside(around, outer)
    return is_inside(owner, outer)


def in_task(op: ir.Operation) -> bool:
    """Whether an operation stands directly in a task, outside of loops over tiles."""
    parent = op.parent
    assert parent is not None
    return parent.operation.name in ("scf.forall", "func.func")


def as_buffer(value: ir.Value) -> ir.Value:
    """A tensor as memory to prefetch."""
    kind = ir.RankedTensorType(value.type)
    any_number = ir.ShapedType.get_dynamic_stride_or_offset()
    layout = ir.StridedLayoutAttr.get(any_number, [any_number] * kind.rank)
    made = ir.MemRefType.get(kind.shape, kind.element_type, layout)
    return bufferization.ToBufferOp(made, value, read_only=True).result


def locality(word: Prefetch) -> int:
    """memref.prefetch's: 3 for the first of the caches, 1 for the third."""
    return 1 + LEVELS - word.level


def after_tasks(source: ir.Value, op: Op) -> ir.InsertionPoint:
    """Where a value is known, outside of the loops over tiles."""
    if not isinstance(source.owner, ir.Block):
        return ir.InsertionPoint.after(source.owner)
    return ir.InsertionPoint(whole_loops(op))
