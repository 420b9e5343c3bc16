"""Loops that LLVM unrolls no further than is good for them.

Over tile registers: LLVM would unroll the few steps of a chunk: their addresses are
more than there are registers, so that pointers are spilled, and a step of four products
needs no unrolling.

Around much work: LLVM would write two or three rounds behind each other, which runs no
faster, and takes as much longer as there is more.

Copies and short elementwise work: LLVM would write dozens of loads and stores behind
each other, and then look at each pair of them, for half a second.

What a schedule unrolls is written out before: the numbers here bound what LLVM would
add by itself, and with it the time that it takes, and are no words.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from nanoloom.ir.mlir import ir, named
from nanoloom.vector.emit_loops import ROLLED

LOOP, ANNOTATION = "scf.for", "loop_annotation"
PRODUCTS, PRODUCT = "llvm.call_intrinsic", "llvm.x86.tdp"
LARGE_OPERATIONS = 64  # in a loop, with those of the loops in it
PLAIN_OPERATIONS = 16  # of one step
COPY_OPERATIONS = 32  # of steps that are written behind each other


def keep_rolled(module: ir.Module) -> None:
    """Annotate the branches behind products of tile registers (LLVM dialect)."""
    for op in tile_products(module):
        end = list(op.operation.block.operations)[-1].operation
        if end.name == "llvm.br":
            end.attributes[ANNOTATION] = ir.Attribute.parse(ROLLED)


def tile_products(module: ir.Module) -> list[ir.OpView]:
    """Products of tile registers."""
    return [
        op
        for op in named(module, PRODUCTS)
        if ir.StringAttr(op.operation.attributes["intrin"]).value.startswith(PRODUCT)
    ]


def bound_loops(module: ir.Module) -> None:
    """Annotate loops that LLVM would unroll too far, on `scf`."""
    loops = named(module, LOOP)
    bound_copies(module, loops)
    for op in large(loops):
        if ANNOTATION not in op.attributes:
            op.attributes[ANNOTATION] = ir.Attribute.parse(ROLLED)


def large(loops: Sequence[ir.OpView]) -> list[ir.Operation]:
    """Loops with many operations in them.  loops: all, parents before children."""
    sizes: dict[ir.Operation, int] = {}
    for op in reversed(loops):
        size = sizes.get(op.operation, 0)
        if size <= LARGE_OPERATIONS:
            size += sum(1 for _ in islice(body_of(op), LARGE_OPERATIONS + 1))
        sizes[op.operation] = size
        around = loop_around(op.operation)
        if around is not None:
            sizes[around] = sizes.get(around, 0) + size
    return [x.operation for x in loops if sizes[x.operation] > LARGE_OPERATIONS]


def loop_around(op: ir.Operation) -> ir.Operation | None:
    around = op.parent
    while around is not None and around.name != LOOP:
        around = around.parent
    return None if around is None else around.operation


def bound_copies(module: ir.Module, loops: Sequence[ir.OpView]) -> None:
    """Annotate plain loops, on `scf`.

    Where all steps would be many operations, some are written behind each other: a
    divisor of their number.  A loop around such a one stays as it is.
    """
    inner = [op for op in loops if is_innermost(op)]
    plain = [op for op in inner if is_plain(op)]
    if len(plain) < len(inner) and tile_products(module):
        return  # what weaves their operands stands between them, written out
    for op in plain:
        together = len(body_of(op))
        around = op.operation
        while around is not None and around.name == LOOP:
            steps = steps_of(around.opview)
            if together * (steps or COPY_OPERATIONS) > COPY_OPERATIONS:
                word = written_at_once(steps or 1, together)
                around.attributes[ANNOTATION] = ir.Attribute.parse(word)
            together *= steps or COPY_OPERATIONS
            around = around.parent


def written_at_once(steps: int, operations: int) -> str:
    """The annotation of a loop with many operations in all its steps together."""
    for count in range(8, 1, -1):
        if steps % count == 0 and count * operations <= COPY_OPERATIONS:
            return f"#llvm.loop_annotation<unroll = <count = {count} : i32>>"
    return ROLLED


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
