"""Loops over tile registers stay as they are.

LLVM would unroll the few steps of a chunk: their addresses are more than there are
registers, so that pointers are spilled, and a step of four products needs no unrolling.
"""

from __future__ import annotations

from nanoloom.mlir import ir, named

PRODUCT = "llvm.x86.tdp"
ROLLED = "#llvm.loop_annotation<unroll = <disable = true>>"


def keep_rolled(module: ir.Module) -> None:
    """Annotate the branches behind products of tile registers (LLVM dialect)."""
    for op in named(module, "llvm.call_intrinsic"):
        if op.operation.attributes["intrin"].value.startswith(PRODUCT):  # type: ignore[attr-defined]
            end = list(op.operation.block.operations)[-1].operation
            if end.name == "llvm.br":
                end.attributes["loop_annotation"] = ir.Attribute.parse(ROLLED)
