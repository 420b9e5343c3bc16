"""What bufferization copies out of a buffer and back: it does not see they are one.

    e = expand_shape s;  t = alloc;  copy e -> t;  c = collapse_shape t;  copy c -> s

A part of a larger tensor, in another shape with sizes in it, is such.
"""

from __future__ import annotations

from nanoloom.ir.mlir import ir, named

COPY, EXPAND, COLLAPSE = "memref.copy", "memref.expand_shape", "memref.collapse_shape"
BETWEEN = ("memref.dim", COLLAPSE)
GROUPS = "reassociation"


def drop_redundant_copies(module: ir.Module) -> None:
    """Erase copies of buffers onto themselves, on the way of a temporary."""
    trips = [round_trip(op.operation) for op in named(module, COPY)]
    for op in [op for trip in trips for op in trip]:
        op.erase()


def round_trip(out: ir.Operation) -> tuple[ir.Operation, ...]:
    """The operations of a way that begins with a copy, the last one first; or none."""
    wide, room = list(out.operands)
    back = way_back(out)
    if back is None or owned_by(room) != "memref.alloc":
        return ()
    narrow, source = list(back.operands)
    if (owned_by(narrow), owned_by(wide)) != (COLLAPSE, EXPAND):
        return ()
    closed, opened = narrow.owner, wide.owner
    same = closed.attributes[GROUPS] == opened.attributes[GROUPS]
    if not same or (closed.operands[0], opened.operands[0]) != (room, source):
        return ()
    alone = len(list(room.uses)) == 2 and len(list(narrow.uses)) == 1
    return (back, closed, out, room.owner) if alone else ()


def way_back(out: ir.Operation) -> ir.Operation | None:
    """The next copy in the same block, if nothing but views stands between."""
    ops = [op.operation for op in out.block.operations]
    for op in ops[ops.index(out) + 1 :]:
        if op.name == COPY:
            return op
        if op.name not in BETWEEN:
            return None
    return None


def owned_by(value: ir.Value) -> str:
    owner = value.owner
    return "" if isinstance(owner, ir.Block) else owner.name
