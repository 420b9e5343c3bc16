"""Parts of operands in rows side by side: what "nanoloom.copy_operand" does.

    f(w[k, j0 + j])  ->  part[k, j] = w[k, j0 + j]; f(part[k, j])

What a task reads of an operand again and again may lie in many pages, and in few places
of the first-level cache.  It is copied in front of the stage, once for all its loops.
"""

from __future__ import annotations

from nanoloom.errors import Error
from nanoloom.kernels.structure import Op, input_count
from nanoloom.mlir import ir, memref, named
from nanoloom.vector.extents import size
from nanoloom.vector.nanokernel.tile.extents import dynamic_size
from nanoloom.vector.vectorize import note, noted, require_axis

COPIED = "nanoloom.copied"


def copy_operand(op: Op, operand: int) -> None:
    """Note that a stage reads a copy of what it reads of an operand."""
    require_axis(op, 0)
    count = input_count(op)
    if not 0 <= operand < count:
        raise Error(f"operand = {operand}: the stage reads {count} operands, from 0 on")
    if not isinstance(op.operation.operands[operand].type, ir.RankedTensorType):
        raise Error(f"operand {operand} is a number: there is nothing to copy")
    note(op, COPIED, *sorted({*noted(op, COPIED), operand}))


def make_copies(module: ir.Module) -> None:
    """Allocate and copy what is noted, on buffers."""
    for op in named(module, "linalg.generic"):
        for number in noted(op, COPIED):
            with ir.InsertionPoint(op), op.operation.location:
                op.operation.operands[number] = copy_of(op.operation.operands[number])


def copy_of(buffer: ir.Value) -> ir.Value:
    """The same numbers, a row behind the other."""
    kind = ir.MemRefType(buffer.type)
    places = [place for place in range(kind.rank) if kind.is_dynamic_dim(place)]
    sizes = [size_of(buffer, place) for place in places]
    made = memref.alloc(ir.MemRefType.get(kind.shape, kind.element_type), sizes, [])
    memref.copy(buffer, made)
    return made


def size_of(buffer: ir.Value, place: int) -> ir.Value:
    """An extent that is known only as it runs; of a part, as the part was taken."""
    owner = buffer.owner
    if isinstance(owner, ir.Block) or owner.name != "memref.subview":
        return size(buffer, place)
    return dynamic_size(owner, place)
