"""Stores of the first lanes of a vector, as whole stores of fewer.

    masked store %v, first 7 of 8  ->  store 4 of %v, 2 of %v, 1 of %v
    masked store %v, first %n      ->  if %n & 4: store 4 of %v; if %n & 2: ...

Where no register holds masks, memory is told lane by lane: vmaskmovps to memory takes
eight to sixteen times as long as two stores (AMD's Zen).  Loads under masks do not.
"""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.ir.access import add, constant_of, index
from nanoloom.ir.mlir import arith, ir, made_by, memref, named, vector
from nanoloom.target.facts import Target
from nanoloom.target.masked_access import WORD, has_mask_registers, has_masked_loads
from nanoloom.vector.emit_loops import emit_branch

STORES = ("vector.maskedstore", "vector.transfer_write")


def store_in_parts(module: ir.Module, target: Target) -> None:
    """On buffers: no store is under a mask that says how many lanes it writes."""
    if target.vector.scalable or has_mask_registers(target, WORD):
        return
    if not has_masked_loads(target, WORD):
        return  # a lane at a time in any case
    for op in named(module, *STORES):
        found = first_lanes_of(op)
        if found is not None:
            with ir.InsertionPoint(op), op.operation.location:
                store(*found)
            op.operation.erase()


Places = Sequence[ir.Value]


def first_lanes_of(
    op: ir.OpView,
) -> tuple[ir.Value, ir.Value, list[ir.Value], ir.Value] | None:
    """Of a store of a row's first lanes: the vector, buffer, place, and how many."""
    if isinstance(op, vector.MaskedStoreOp):
        made, buffer, mask = op.valueToStore, op.base, op.mask
    elif isinstance(op, vector.TransferWriteOp) and op.mask is not None:
        made, buffer, mask = op.valueToStore, op.base, op.mask
        last = ir.AffineMap.get_minor_identity(len(list(op.indices)), 1)
        if op.permutation_map.value != last:
            return None
    else:
        return None
    count = made_by(mask, "vector.create_mask")
    strides, _ = ir.MemRefType(buffer.type).get_strides_and_offset()
    row = len(ir.VectorType(made.type).shape) == 1 and strides[-1] == 1
    if count is None or not row:
        return None
    return made, buffer, list(op.indices), count.operands[0]


def store(made: ir.Value, buffer: ir.Value, at: Places, count: ir.Value) -> None:
    (lanes,) = ir.VectorType(made.type).shape
    known = constant_of(count)
    if known is not None:
        store_known(made, buffer, at, min(known, lanes))
        return
    whole = arith.cmpi(arith.CmpIPredicate.sge, count, index(lanes))

    def in_parts() -> None:
        store_counted(made, buffer, at, arith.maxsi(count, index(0)))

    emit_branch(whole, lambda: vector.store(made, buffer, at), in_parts)


def store_known(made: ir.Value, buffer: ir.Value, at: Places, count: int) -> None:
    first = 0
    while first < count:
        part = 1 << (count - first).bit_length() - 1
        place = [*at[:-1], add(at[-1], index(first))]
        store_lanes(made, range(first, first + part), buffer, place)
        first += part


def store_counted(
    made: ir.Value, buffer: ir.Value, at: Places, count: ir.Value
) -> None:
    """Fewer lanes than there are, halves of halves: those of 4, 2, 1 that add up."""
    (lanes,) = ir.VectorType(made.type).shape
    rest, part = made, lanes // 2
    while part:
        here = arith.andi(count, index(part))
        there = arith.cmpi(arith.CmpIPredicate.ne, here, index(0))
        rest = store_half(rest, buffer, at, there)
        at, part = [*at[:-1], arith.addi(at[-1], here)], part // 2


def store_half(
    made: ir.Value, buffer: ir.Value, at: Places, there: ir.Value
) -> ir.Value:
    """Write the lower half, if there; what is left then, or else the lower one."""
    (lanes,) = ir.VectorType(made.type).shape
    lower, upper = range(lanes // 2), range(lanes // 2, lanes)

    def written() -> list[ir.Value]:
        store_lanes(made, lower, buffer, at)
        return [vector.shuffle(made, made, list(upper))]

    def left() -> list[ir.Value]:
        return [vector.shuffle(made, made, list(lower))]

    element = ir.VectorType(made.type).element_type
    kind = ir.VectorType.get([lanes // 2], element)
    return emit_branch(there, written, left, [kind])[0]


def store_lanes(made: ir.Value, lanes: range, buffer: ir.Value, at: Places) -> None:
    if len(lanes) == 1:
        memref.store(vector.extract(made, [], [lanes.start]), buffer, list(at))
    else:
        vector.store(vector.shuffle(made, made, list(lanes)), buffer, list(at))
