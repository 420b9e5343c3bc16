"""Reads of one tensor in one block become one: bufferization looks at each of them.

Whether a write may happen in place is asked for every pair of a read and a write, and
a register tile reads a tensor hundreds of times.  A write that must not be seen by one
of these reads is before the last of them, so the last stands for all.

    b = to_buffer t;  load b[..];  load b[..];  ...;  last = to_buffer t;  load last[..]
"""

from __future__ import annotations

from nanoloom.ir.mlir import bufferization, ir, memref, named

EXTRACT, TRANSFER, CAST = "tensor.extract", "vector.transfer_read", "memref.cast"
FIRST_AND_LAST = 2


def read_buffers(module: ir.Module) -> None:
    """All reads of a tensor but for few ones read its buffer, as it is there."""
    groups: dict[tuple[ir.Block, ir.Value], list[ir.Operation]] = {}
    for op in named(module, EXTRACT, TRANSFER):
        read = op.operation
        if isinstance(read.operands[0].type, ir.RankedTensorType):
            groups.setdefault((read.block, read.operands[0]), []).append(read)
    for (_, tensor), reads in groups.items():
        if len(reads) > FIRST_AND_LAST:
            first, last = (buffer_before(x, tensor) for x in (reads[0], reads[-1]))
            for read in reads[:-1]:
                read_from(first, read)
            read_from(last, reads[-1])


def buffer_before(op: ir.Operation, tensor: ir.Value) -> ir.Value:
    """What a tensor's numbers lie in, in front of an operation that reads them."""
    kind = ir.RankedTensorType(tensor.type)
    any_place = ir.ShapedType.get_dynamic_stride_or_offset()
    layout = ir.StridedLayoutAttr.get(any_place, [any_place] * kind.rank)
    buffer = ir.MemRefType.get(kind.shape, kind.element_type, layout)
    with ir.InsertionPoint(op), op.location:
        return bufferization.to_buffer(buffer, tensor, read_only=True)


def read_from(buffer: ir.Value, op: ir.Operation) -> None:
    if op.name == TRANSFER:
        op.operands[0] = buffer
        return
    with ir.InsertionPoint(op), op.location:
        number = memref.load(buffer, list(op.operands)[1:])
    op.results[0].replace_all_uses_with(number)
    op.erase()


def read_where_it_lies(module: ir.Module) -> None:
    """Reads of a buffer know how it lies, once there is one."""
    for op in named(module, CAST):
        cast = op.operation
        users = {use.owner.operation.name for use in cast.results[0].uses}
        if users <= {TRANSFER, "memref.load"}:
            cast.results[0].replace_all_uses_with(cast.operands[0])
            cast.erase()
