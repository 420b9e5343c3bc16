"""Sums that stay in memory: some of their steps between a load and a store.

    for k:                          for k by 8:
      c = load C[i, j]                c = load C[i, j]
      s = c + a[k]           ->       s = c + a[k] + ... + a[k + 7]
      store s, C[i, j]                store s, C[i, j]

ONNX-MLIR's products are such (KrnlMatmul.cpp): a tile of registers has eight steps.
"""

from __future__ import annotations

from nanoloom.ir.mlir import arith, ir, llvm, memref, named
from nanoloom_papers.affine.build import (
    begin_at,
    body_of,
    bounds_of,
    copied,
    drop_if_done,
    index_of_loop,
    loop_like,
    shifted,
    steps_of,
    yield_values,
)
from nanoloom_papers.affine.carrier import FOR, STORE, Carrier
from nanoloom_papers.affine.carry import is_movable, load_of
from nanoloom_papers.affine.detect import reductions

STORES = (STORE, "affine.vector_store")


def between_load_and_store(loop: ir.Operation, count: int) -> None:
    """So many steps of a loop at once; those left over stay one by one.

    Nothing changes in a loop whose bounds are no numbers, or that does not load and
    store what it reduces.
    """
    bounds = bounds_of(loop)
    held = [r.carrier for r in reductions(loop) if is_movable(r.carrier, loop)]
    if bounds is None or not held:
        return
    low, high = bounds
    end = low + (high - low) // count * count
    if end == low:
        return
    with ir.InsertionPoint(loop), loop.location:
        _, block = loop_like(loop, [], (low, end), count)
        with ir.InsertionPoint(block):
            emit_steps(loop, block.arguments[0], count, held)
        yield_values(block, [])
    begin_at(loop, end)
    drop_if_done(loop)


def emit_steps(
    loop: ir.Operation, index: ir.Value, count: int, held: list[Carrier]
) -> None:
    """The loop's steps, at the current insertion point.  held: loaded and stored."""
    sums = [load_of(carrier).clone().results[0] for carrier in held]
    ends = [carrier.end for carrier in held]
    loads = [load_of(carrier) for carrier in held]
    for number in range(count):
        values = {index_of_loop(loop): shifted(index, number)}
        values |= {load.results[0]: s for load, s in zip(loads, sums, strict=True)}
        for op in steps_of(body_of(loop)):
            if op not in loads and op not in ends:
                copied(op, values)
        sums = [values.get(end.operands[0], end.operands[0]) for end in ends]
    for end, result in zip(ends, sums, strict=True):
        end.clone().operands[0] = result


def read_again(module: ir.Module) -> None:
    """Have each step of a loop load what the one before has stored in the same place.

    LLVM would keep it in a register: to it, a function without instructions may change
    what is there.
    """
    for op in named(module, FOR):
        body = steps_of(body_of(op.operation))
        if any(each.name == FOR for each in body):
            continue
        index = index_of_loop(op.operation)
        stores = [x for x in body if x.name in STORES and index not in x.operands]
        with ir.InsertionPoint(body_of(op.operation).operations[-1]), op.location:
            for buffer in dict.fromkeys(each.operands[1] for each in stores):
                may_change(buffer)


def may_change(buffer: ir.Value) -> None:
    place = memref.extract_aligned_pointer_as_index(buffer)
    number = arith.index_cast(ir.IntegerType.get_signless(64), place)
    llvm.InlineAsmOp(None, [number], "", "r,~{memory}", has_side_effects=True)
