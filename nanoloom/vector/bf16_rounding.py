"""f32 to bf16 by integers, where the target has no instruction for it.

    bits(y) = (bits(x) + 0x7fff + (bits(x) >> 16 & 1)) >> 16
    bits(y) = (bits(x) | 0x400000) >> 16 where x is a NaN

to the nearest, ties to even; a NaN keeps what fits of its bits, as instructions do.
Nothing is a bf16 before it is done: LLVM takes vectors of them apart where it selects,
and it would move the selection of a constant NaN behind the conversion.
"""

from __future__ import annotations

from nanoloom.mlir import arith, ir
from nanoloom.vector.cast_by_integers import (
    as_type,
    broadcast_like,
    like,
    replace_conversions,
)

HALF, BIAS, QUIET = 16, 0x7FFF, 0x400000


def round_in_integers(module: ir.Module) -> None:
    """Replace every conversion of f32 numbers to bf16, vectors of them too."""
    f32, bf16 = ir.F32Type.get(), ir.BF16Type.get()
    replace_conversions(module, "arith.truncf", f32, bf16, rounded)


def rounded(x: ir.Value) -> ir.Value:
    """The bf16 numbers next to f32 numbers."""
    i32, i16 = (like(x.type, ir.IntegerType.get_signless(n)) for n in (32, 16))
    bits = as_type(i32, x)
    odd = arith.andi(
        arith.shrui(bits, broadcast_like(i32, HALF)), broadcast_like(i32, 1)
    )
    near = arith.addi(bits, arith.addi(odd, broadcast_like(i32, BIAS)))
    nan = arith.cmpf(arith.CmpFPredicate.UNO, x, x)
    chosen = arith.select(nan, arith.ori(bits, broadcast_like(i32, QUIET)), near)
    upper = arith.trunci(i16, arith.shrui(chosen, broadcast_like(i32, HALF)))
    return as_type(like(x.type, ir.BF16Type.get()), upper)
