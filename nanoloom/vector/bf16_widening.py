"""bf16 to f32 by integers, where LLVM has no way of its own.

bits(y) = bits(x) << 16
"""

from __future__ import annotations

from nanoloom.mlir import arith, ir
from nanoloom.vector.cast_by_integers import (
    as_type,
    broadcast_like,
    like,
    replace_conversions,
)

HALF = 16


def widen_in_integers(module: ir.Module) -> None:
    """Replace every conversion of bf16 numbers to f32, vectors of them too."""
    bf16, f32 = ir.BF16Type.get(), ir.F32Type.get()
    replace_conversions(module, "arith.extf", bf16, f32, widened)


def widened(x: ir.Value) -> ir.Value:
    """The same numbers in f32."""
    i16, i32 = (like(x.type, ir.IntegerType.get_signless(n)) for n in (16, 32))
    bits = arith.shli(arith.extui(i32, as_type(i16, x)), broadcast_like(i32, HALF))
    return as_type(like(x.type, ir.F32Type.get()), bits)


__all__ = ["widen_in_integers"]
