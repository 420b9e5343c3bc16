"""f32 to bf16 by integers, where the target has no instruction for it.

    bits(y) = (bits(x) + 0x7fff + (bits(x) >> 16 & 1)) >> 16
    bits(y) = (bits(x) | 0x400000) >> 16 where x is a NaN

to the nearest, ties to even; a NaN keeps what fits of its bits, as instructions do.
Nothing is a bf16 before it is done: LLVM takes vectors of them apart where it selects,
and it would move the selection of a constant NaN behind the conversion.
"""

from __future__ import annotations

from nanoloom.mlir import arith, ir, named, vector

HALF, BIAS, QUIET = 16, 0x7FFF, 0x400000


def round_in_integers(module: ir.Module) -> None:
    """Replace every conversion of f32 numbers to bf16, vectors of them too."""
    for op in named(module, "arith.truncf"):
        (source,), result = op.operation.operands, op.operation.results[0]
        if (
            element(source.type) == ir.F32Type.get()
            and element(result.type) == ir.BF16Type.get()
        ):
            with ir.InsertionPoint(op), op.operation.location:
                result.replace_all_uses_with(rounded(source))
            op.operation.erase()


def rounded(x: ir.Value) -> ir.Value:
    """The bf16 numbers next to f32 numbers."""
    i32, i16 = (like(x.type, ir.IntegerType.get_signless(n)) for n in (32, 16))

    def every(number: int) -> ir.Value:
        one = arith.constant(ir.IntegerType.get_signless(32), number)
        return vector.broadcast(i32, one) if isinstance(i32, ir.VectorType) else one

    bits = as_type(i32, x)
    odd = arith.andi(arith.shrui(bits, every(HALF)), every(1))
    near = arith.addi(bits, arith.addi(odd, every(BIAS)))
    nan = arith.cmpf(arith.CmpFPredicate.UNO, x, x)
    chosen = arith.select(nan, arith.ori(bits, every(QUIET)), near)
    upper = arith.trunci(i16, arith.shrui(chosen, every(HALF)))
    return as_type(like(x.type, ir.BF16Type.get()), upper)


def as_type(kind: ir.Type, value: ir.Value) -> ir.Value:
    """The same bits."""
    if isinstance(kind, ir.VectorType) and kind.rank:
        return vector.bitcast(kind, value)
    return arith.bitcast(kind, value)


def element(kind: ir.Type) -> ir.Type:
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


def like(kind: ir.Type, made: ir.Type) -> ir.Type:
    """A scalar, or a vector of the same shape."""
    if not isinstance(kind, ir.VectorType):
        return made
    return ir.VectorType.get(kind.shape, made)
