"""f16 to f32 by integers, where the target has no instruction for it.

    bits(|y|) = bits(float(bits(|x|) << 13) * 2^112)
    bits(y) = bits(|y|) | sign(x) << 31

and the exponent of an infinity or a NaN, all ones, stays so.  The product corrects the
exponent, of numbers that are subnormal in f16, too.  LLVM would call a function for
each number, and save all registers of a product for it.
"""

from __future__ import annotations

from nanoloom.mlir import arith, ir
from nanoloom.vector.cast_by_integers import (
    as_type,
    broadcast_like,
    like,
    replace_conversions,
)

# Of f16; of f32, where they have so many digits more, and a sign so many bits higher.
MAGNITUDE, LARGEST = 0x7FFF, 0x7BFF
DIGITS, HALF, EXPONENT = 13, 16, 0x7F80_0000
RAISED = 2.0**112  # exponents count from -127, not from -15


def widen_in_integers(module: ir.Module) -> None:
    """Replace every conversion of f16 numbers to f32, vectors of them too."""
    f16, f32 = ir.F16Type.get(), ir.F32Type.get()
    replace_conversions(module, "arith.extf", f16, f32, widened)


def widened(x: ir.Value) -> ir.Value:
    """The same numbers in f32."""
    i16, i32 = (like(x.type, ir.IntegerType.get_signless(n)) for n in (16, 32))
    f32 = like(x.type, ir.F32Type.get())
    bits = arith.extui(i32, as_type(i16, x))
    magnitude = arith.andi(bits, broadcast_like(i32, MAGNITUDE))
    sign = arith.shli(arith.xori(bits, magnitude), broadcast_like(i32, HALF))
    small = as_type(f32, arith.shli(magnitude, broadcast_like(i32, DIGITS)))
    number = as_type(i32, arith.mulf(small, broadcast_like(f32, RAISED)))
    special = arith.cmpi(
        arith.CmpIPredicate.sgt, magnitude, broadcast_like(i32, LARGEST)
    )
    ones = arith.select(special, broadcast_like(i32, EXPONENT), broadcast_like(i32, 0))
    return as_type(f32, arith.ori(arith.ori(number, sign), ones))


__all__ = ["widen_in_integers"]
