"""f32 to f16 by integers, where the target has no instruction for it.

    bits(|y|) = (bits(|x|) - (112 << 23) + 0xfff + (bits(|x|) >> 13 & 1)) >> 13
    bits(|y|) = bits(|x| + 0.5) - bits(0.5)      where |x| < 2^-14: y is subnormal
    bits(|y|) = bits(|x|) >> 13 & 0x7fff | 0x200 where x is a NaN

and the sign.  To the nearest, ties to even: the sum with 0.5 is rounded to steps of
2^-24, which are those of the subnormal numbers.  From 2^16 on all are infinity, as are
those that the carry of the first line takes there.  A NaN keeps what fits of its bits.
LLVM would call a function for each number, and cannot for vectors of unknown width.
"""

from __future__ import annotations

from nanoloom.mlir import arith, ir
from nanoloom.vector.cast_by_integers import (
    as_type,
    broadcast_like,
    like,
    replace_conversions,
)

MAGNITUDE, EXPONENT, HALF, DIGITS = 0x7FFF_FFFF, 0x7F80_0000, 16, 13
INFINITE, NORMAL = 0x4780_0000, 0x3880_0000  # 2^16, 2^-14
REBIASED = 0xFFF - (112 << 23)  # exponents count from -15, and half of a last digit
STEPS, STEP_BITS = 0.5, 0x3F00_0000  # f32 from here on has the steps of 2^-24
NUMBER, QUIET = 0x7FFF, 0x200


def round_in_integers(module: ir.Module) -> None:
    """Replace every conversion of f32 numbers to f16, vectors of them too."""
    f32, f16 = ir.F32Type.get(), ir.F16Type.get()
    replace_conversions(module, "arith.truncf", f32, f16, rounded)


def rounded(x: ir.Value) -> ir.Value:
    """The f16 numbers next to f32 numbers."""
    i32, i16 = (like(x.type, ir.IntegerType.get_signless(n)) for n in (32, 16))
    bits = as_type(i32, x)
    magnitude = arith.andi(bits, broadcast_like(i32, MAGNITUDE))
    sign = arith.shrui(arith.xori(bits, magnitude), broadcast_like(i32, HALF))
    below = arith.minsi(magnitude, broadcast_like(i32, INFINITE))
    odd = arith.andi(
        arith.shrui(below, broadcast_like(i32, DIGITS)), broadcast_like(i32, 1)
    )
    carried = arith.addi(below, arith.addi(odd, broadcast_like(i32, REBIASED)))
    normal = arith.shrui(carried, broadcast_like(i32, DIGITS))
    steps = arith.addf(as_type(x.type, magnitude), broadcast_like(x.type, STEPS))
    small = arith.subi(as_type(i32, steps), broadcast_like(i32, STEP_BITS))
    less, greater = arith.CmpIPredicate.slt, arith.CmpIPredicate.sgt
    is_small = arith.cmpi(less, magnitude, broadcast_like(i32, NORMAL))
    near = arith.select(is_small, small, normal)
    kept = arith.andi(
        arith.shrui(magnitude, broadcast_like(i32, DIGITS)), broadcast_like(i32, NUMBER)
    )
    nan = arith.cmpi(greater, magnitude, broadcast_like(i32, EXPONENT))
    chosen = arith.select(nan, arith.ori(kept, broadcast_like(i32, QUIET)), near)
    halves = arith.trunci(i16, arith.ori(chosen, sign))
    return as_type(like(x.type, ir.F16Type.get()), halves)
