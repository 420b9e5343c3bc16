"""Loops that LLVM unrolls no further than is good for them.

Over tile registers: LLVM would unroll the few steps of a chunk: their addresses are
more than there are registers, so that pointers are spilled, and a step of four products
needs no unrolling.

Copies and short elementwise work: LLVM would write dozens of loads and stores behind
each other, and then look at each pair of them, for half a second.
"""

from __future__ import annotations

from nanoloom.mlir import ir, named

PRODUCT = "llvm.x86.tdp"
PLAIN_OPERATIONS = 16  # of one step
COPY_STEPS = 8  # of a copying loop that LLVM may write behind each other
COPY_OPERATIONS = 32  # and the operations that all its steps may have together
ROLLED = "#llvm.loop_annotation<unroll = <disable = true>>"


def keep_rolled(module: ir.Module) -> None:
    """Annotate the branches behind products of tile registers (LLVM dialect)."""
    for op in named(module, "llvm.call_intrinsic"):
        if op.operation.attributes["intrin"].value.startswith(PRODUCT):  # type: ignore[attr-defined]
            end = list(op.operation.block.operations)[-1].operation
            if end.name == "llvm.br":
                end.attributes["loop_annotation"] = ir.Attribute.parse(ROLLED)


def bound_copies(module: ir.Module) -> None:
    """In a kernel of plain loops alone: annotate them, on `scf`.

    Many steps of an innermost loop are unrolled by a divisor of their number; those of
    the loops around it are not.
    """
    loops = [op for op in named(module, "scf.for") if is_innermost(op)]
    if not all(map(is_plain, loops)):
        return
    for op in loops:
        count = steps_at_once(op)
        if count:
            word = f"#llvm.loop_annotation<unroll = <count = {count} : i32>>"
            op.operation.attributes["loop_annotation"] = ir.Attribute.parse(word)
        together = len(body_of(op))
        around = op.operation
        while around is not None and around.name == "scf.for":
            together *= steps_of(around.opview) or COPY_OPERATIONS
            if around != op.operation and together > COPY_OPERATIONS:
                around.attributes["loop_annotation"] = ir.Attribute.parse(ROLLED)
            around = around.parent


def body_of(op: ir.OpView) -> list[ir.OpView]:
    return list(op.operation.regions[0].blocks[0].operations)


def is_innermost(op: ir.OpView) -> bool:
    return not any(inner.operation.regions for inner in body_of(op))


def is_plain(op: ir.OpView) -> bool:
    """Whether a loop reads, computes little and writes, and collects nothing."""
    body = [inner.operation for inner in body_of(op)]
    if op.operation.results or len(body) > PLAIN_OPERATIONS:
        return False
    if any(inner.name == "vector.fma" for inner in body):
        return False
    read = {inner.operands[0] for inner in body if inner.name.endswith(".load")}
    return not any(
        inner.operands[1] in read for inner in body if inner.name.endswith(".store")
    )


def steps_at_once(op: ir.OpView) -> int:
    """How many steps of a long loop to write behind each other; 0 for other loops."""
    steps = steps_of(op)
    if steps is None or steps <= COPY_STEPS:
        return 0
    if steps * len(body_of(op)) <= COPY_OPERATIONS:
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
