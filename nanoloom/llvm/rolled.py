"""Loops that LLVM unrolls no further than is good for them.

Over tile registers: LLVM would unroll the few steps of a chunk: their addresses are
more than there are registers, so that pointers are spilled, and a step of four products
needs no unrolling.

Copies: LLVM would write dozens of loads and stores behind each other, and then look at
each pair of them, for half a second.
"""

from __future__ import annotations

from nanoloom.mlir import ir, named, operations

PRODUCT = "llvm.x86.tdp"
COPY_STEPS = 8  # of a copying loop that LLVM may write behind each other
COPY_OPERATIONS = 96  # and the operations that all its steps may have together
ROLLED = "#llvm.loop_annotation<unroll = <disable = true>>"


def keep_rolled(module: ir.Module) -> None:
    """Annotate the branches behind products of tile registers (LLVM dialect)."""
    for op in named(module, "llvm.call_intrinsic"):
        if op.operation.attributes["intrin"].value.startswith(PRODUCT):  # type: ignore[attr-defined]
            end = list(op.operation.block.operations)[-1].operation
            if end.name == "llvm.br":
                end.attributes["loop_annotation"] = ir.Attribute.parse(ROLLED)


def bound_copies(module: ir.Module) -> None:
    """In a kernel that computes nothing: annotate the innermost loops with many steps.

    Their steps are unrolled by a divisor of their number, and the loops around them are
    not (on loops of `scf`).
    """
    if operations(module, lambda op: not copies(op)):
        return
    for op in named(module, "scf.for"):
        count = copies_at_once(op)
        if count:
            word = f"#llvm.loop_annotation<unroll = <count = {count} : i32>>"
            op.operation.attributes["loop_annotation"] = ir.Attribute.parse(word)
            around = op.operation.parent
            while around is not None and around.name == "scf.for":
                around.attributes["loop_annotation"] = ir.Attribute.parse(ROLLED)
                around = around.parent


def copies(op: ir.OpView) -> bool:
    """Whether an operation only finds a place, reads it or writes to it."""
    name = op.operation.name
    kinds = [result.type for result in op.operation.results]
    if name.startswith(("arith.", "math.")) and name != "arith.constant":
        return all(isinstance(kind, ir.IndexType) for kind in kinds)
    return True


def copies_at_once(op: ir.OpView) -> int:
    """How many steps of a long loop to write behind each other; 0 for other loops."""
    body = list(op.operation.regions[0].blocks[0].operations)
    steps = steps_of(op)
    if steps is None or steps <= COPY_STEPS or any(x.operation.regions for x in body):
        return 0
    if steps * len(body) <= COPY_OPERATIONS:
        return 0
    return next((n for n in (8, 4, 2) if steps % n == 0), 1)


def steps_of(op: ir.OpView) -> int | None:
    """How often a loop runs, where its bounds are numbers."""
    numbers: list[int] = []
    for value in list(op.operation.operands)[:3]:
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.name != "arith.constant":
            return None
        numbers.append(owner.attributes["value"].value)  # type: ignore[attr-defined]
    low, high, step = numbers
    return max(0, -(-(high - low) // step))
