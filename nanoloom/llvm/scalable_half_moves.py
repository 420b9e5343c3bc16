"""Scalable vectors of f16 and bf16 that are only moved, as ones of 16-bit integers.

    load <vscale x 8 x half>  ->  load <vscale x 8 x i16>

Where a CPU computes with none of them LLVM has no registers for them, and cannot take
vectors of unknown width apart.  What is converted is integers already
(vector/float_casts.py).
"""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np

from nanoloom.ir.mlir import ir, llvm
from nanoloom.llvm.masked_bf16 import LOAD, STORE
from nanoloom.vector.widths import is_scalable

# What does nothing to the bits, beside loads and stores.
MOVES = frozenset({
    LOAD,
    STORE,
    "llvm.load",
    "llvm.store",
    "llvm.bitcast",
    "llvm.select",
    "llvm.shufflevector",
    "llvm.insertelement",
    "llvm.extractelement",
    "llvm.mlir.constant",
    "llvm.mlir.poison",
    "llvm.mlir.undef",
    "llvm.mlir.zero",
    "llvm.intr.masked.gather",
    "llvm.intr.masked.scatter",
    "llvm.intr.vector.deinterleave2",
    "llvm.intr.vp.merge",
    "llvm.intr.vp.select",
    "llvm.br",
    "llvm.cond_br",
    "llvm.extractvalue",
})  # fmt: skip
SMALL_FLOATS = re.compile(r"<vscale x \d+ x (half|bfloat)>")  # in LLVM IR
CALL, MOVING = "llvm.call_intrinsic", ("llvm.vp.load", "llvm.vp.store")


def has_small_floats(text: str) -> bool:
    """Whether LLVM IR has such vectors: few kernels do, and a look at each operation of
    the others takes long."""
    return SMALL_FLOATS.search(text) is not None


def move_halves_as_integers(module: ir.Module) -> None:
    """In LLVM's dialect: rewrite them, unless something computes with one."""
    for kind in (ir.F16Type.get(), ir.BF16Type.get()):
        found = touching(module, kind)
        if all(moves(op) for op in found):
            for op in found:
                rewrite(op, kind)


def touching(module: ir.Module, kind: ir.Type) -> list[ir.Operation]:
    """All operations that take or give scalable vectors of such numbers."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if any(is_vector(value.type, kind) for value in (*op.operands, *op.results)):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def is_vector(kind: ir.Type, element: ir.Type) -> bool:
    """Whether a type is a scalable vector of these."""
    return is_scalable(kind) and ir.VectorType(kind).element_type == element


def moves(op: ir.Operation) -> bool:
    """Whether an operation does nothing to the bits."""
    if op.name == CALL:
        return ir.StringAttr(op.attributes["intrin"]).value in MOVING
    return op.name in MOVES


def rewrite(op: ir.Operation, kind: ir.Type) -> None:
    """The same operation on integers; numbers that it puts into a vector or takes out
    of one stay floats around it."""
    i16 = ir.IntegerType.get_signless(16)
    values = (*op.operands, *op.results)
    with ir.InsertionPoint(op), op.location:
        if op.name == "llvm.insertelement":
            op.operands[1] = llvm.bitcast(i16, op.operands[1])
        if op.name == "llvm.mlir.constant":
            op.attributes["value"] = in_bits(op.attributes["value"])
    if op.name == "llvm.extractelement":
        taken_out(op.results[0])
    for value in values:
        if is_vector(value.type, kind):
            whole = ir.VectorType(value.type)
            lanes, width = whole.shape, whole.scalable_dims
            value.set_type(ir.VectorType.get(lanes, i16, scalable=width))


def taken_out(number: ir.Value) -> None:
    """A lane that becomes an integer is a float to whatever reads it."""
    kind = number.type
    number.set_type(ir.IntegerType.get_signless(16))
    with ir.InsertionPoint.after(number.owner), number.owner.location:
        made = llvm.bitcast(kind, number)
    number.replace_all_uses_except(made, made.owner)


def in_bits(constant: ir.Attribute) -> ir.Attribute:
    """The same number in all lanes, as integers."""
    whole = ir.VectorType(constant.type)
    half = (
        np.float16 if isinstance(whole.element_type, ir.F16Type) else ml_dtypes.bfloat16
    )
    number = ir.DenseElementsAttr(constant).get_splat_value().value
    i16 = ir.IntegerType.get_signless(16)
    kind = ir.VectorType.get(whole.shape, i16, scalable=whole.scalable_dims)
    bits = int(np.array(number, half).view(np.int16))
    return ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(i16, bits))
