"""Conversions of floats by operations on their bits, between any two formats.

To more bits, where d digits are added and exponents count from `raised` further below:

    bits(|y|) = bits(float(bits(|x|) << d) * 2^raised)

and the exponent of an infinity or a NaN, all ones, stays so.  The product corrects the
exponent, of subnormal numbers, too.  To fewer bits, to the nearest, ties to even:

    bits(|y|) = (bits(|x|) - (raised << digits) + half - 1 + (bits(|x|) >> d & 1)) >> d
    bits(|y|) = bits(|x| + step) - bits(step)     where y is subnormal
    bits(|y|) = bits(|x|) >> d | quiet            where x is a NaN, which keeps its bits

and the sign.  A sum with `step` is rounded to the steps of subnormal numbers.  What is
too large is infinity, by the carry of the first line, too.  Where both formats have the
same exponents, nothing of that is special: bits and sign are moved together.

LLVM would call a function for each number and save all registers for it, cannot for
vectors of unknown width, and takes vectors of bf16 apart where it selects.  So nothing
is narrow before it is done.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.ir.mlir import arith, ir, named, vector
from nanoloom.target.facts import Target
from nanoloom.vector.widths import element_of, filled, with_element


@dataclass(frozen=True)
class FloatFormat:
    """A sign, an exponent and a mantissa of so many bits, as IEEE 754 has them.

    name: MLIR's.
    """

    name: str
    exponent: int
    mantissa: int

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def bias(self) -> int:
        """The exponents begin so far below that of one."""
        return (1 << self.exponent - 1) - 1

    @property
    def infinity(self) -> int:
        """Its bits; those of a NaN are more."""
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def magnitude(self) -> int:
        """All bits but the sign."""
        return (1 << self.bits - 1) - 1

    def power(self, of_two: int) -> int:
        """The bits of a power of two."""
        return (self.bias + of_two) << self.mantissa


FORMATS = {
    x.name: x
    for x in (
        FloatFormat("f32", 8, 23),
        FloatFormat("bf16", 8, 7),
        FloatFormat("f16", 5, 10),
        FloatFormat("f8E5M2", 5, 2),
        FloatFormat("f8E4M3", 4, 3),
    )
}
CONVERSIONS = "arith.extf", "arith.truncf"


def cast_by_integers(module: ir.Module, target: Target) -> None:
    """Replace the conversions that a target has no instructions for."""
    replace_casts(module, without_instructions(target))


def without_instructions(target: Target) -> set[tuple[str, str]]:
    """The types from and to which a target converts by integers."""
    any_width = target.vector.scalable
    found: set[tuple[str, str]] = set()
    if not target.rounds_bf16:
        found.add(("f32", "bf16"))
    if not target.widens_f16:
        found.add(("f16", "f32"))
        if any_width or target.is_scalar:
            found.add(("f32", "f16"))
    if not target.isa.selects_bf16 or (any_width and not target.rounds_bf16):
        found.add(("bf16", "f32"))
    return found


def replace_casts(module: ir.Module, pairs: set[tuple[str, str]]) -> None:
    """Replace every conversion between two of these types, of vectors, too."""
    for op in named(module, *CONVERSIONS):
        (x,), result = op.operation.operands, op.operation.results[0]
        pair = str(element_of(x.type)), str(element_of(result.type))
        if pair not in pairs:
            continue
        given, wanted = (FORMATS[name] for name in pair)
        convert = widened if given.bits < wanted.bits else narrowed
        with ir.InsertionPoint(op), op.operation.location:
            made = convert(Bits(x.type, given, wanted), x)
            result.replace_all_uses_with(as_type(result.type, made))
        op.operation.erase()


@dataclass(frozen=True)
class Bits:
    """The numbers of a conversion as integers; kind: of what is converted."""

    kind: ir.Type
    given: FloatFormat
    wanted: FloatFormat

    def of(self, form: FloatFormat, value: ir.Value) -> ir.Value:
        return as_type(self.integers(form), value)

    def integers(self, form: FloatFormat) -> ir.Type:
        return with_element(self.kind, ir.IntegerType.get_signless(form.bits))


def widened(cast: Bits, x: ir.Value) -> ir.Value:
    """The bits of the same numbers."""
    given, wanted = cast.given, cast.wanted
    wide, behind = cast.integers(wanted), wanted.bits - given.bits
    bits = arith.extui(wide, cast.of(given, x))
    if given.exponent == wanted.exponent:
        return arith.shli(bits, filled(wide, behind))
    floats = with_element(cast.kind, ir.Type.parse(wanted.name))
    magnitude = arith.andi(bits, filled(wide, given.magnitude))
    sign = arith.shli(arith.xori(bits, magnitude), filled(wide, behind))
    digits = filled(wide, wanted.mantissa - given.mantissa)
    small = as_type(floats, arith.shli(magnitude, digits))
    raised = filled(floats, 2.0 ** (wanted.bias - given.bias))
    number = as_type(wide, arith.mulf(small, raised))
    special = arith.cmpi(
        arith.CmpIPredicate.sgt, magnitude, filled(wide, given.infinity - 1)
    )
    ones = arith.select(special, filled(wide, wanted.infinity), filled(wide, 0))
    return arith.ori(arith.ori(number, sign), ones)


def narrowed(cast: Bits, x: ir.Value) -> ir.Value:
    """The bits of the numbers next to numbers."""
    given, wanted = cast.given, cast.wanted
    digits, quiet = given.mantissa - wanted.mantissa, 1 << wanted.mantissa - 1
    bits, narrow = cast.of(given, x), cast.integers(wanted)
    if given.exponent != wanted.exponent:
        return arith.trunci(narrow, rebiased(cast, x, bits, digits, quiet))
    near = to_even(bits, digits)
    nan = arith.cmpf(arith.CmpFPredicate.UNO, x, x)
    kept = arith.ori(bits, filled(bits.type, quiet << digits))
    chosen = arith.select(nan, kept, near)
    return arith.trunci(narrow, arith.shrui(chosen, filled(bits.type, digits)))


def rebiased(
    cast: Bits, x: ir.Value, bits: ir.Value, digits: int, quiet: int
) -> ir.Value:
    """Narrow numbers' bits in lanes of the wide ones', where exponents are fewer."""
    given, wanted, wide = cast.given, cast.wanted, bits.type
    magnitude = arith.andi(bits, filled(wide, given.magnitude))
    behind = filled(wide, given.bits - wanted.bits)
    sign = arith.shrui(arith.xori(bits, magnitude), behind)
    below = arith.minsi(magnitude, filled(wide, given.power(wanted.bias + 1)))
    lowered = (given.bias - wanted.bias) << given.mantissa
    normal = arith.shrui(to_even(below, digits, lowered), filled(wide, digits))
    step = digits + 1 - wanted.bias
    steps = arith.addf(as_type(x.type, magnitude), filled(x.type, 2.0**step))
    small = arith.subi(as_type(wide, steps), filled(wide, given.power(step)))
    less, greater = arith.CmpIPredicate.slt, arith.CmpIPredicate.sgt
    least = filled(wide, given.power(1 - wanted.bias))
    near = arith.select(arith.cmpi(less, magnitude, least), small, normal)
    kept = arith.andi(
        arith.shrui(magnitude, filled(wide, digits)), filled(wide, wanted.magnitude)
    )
    nan = arith.cmpi(greater, magnitude, filled(wide, given.infinity))
    chosen = arith.select(nan, arith.ori(kept, filled(wide, quiet)), near)
    return arith.ori(chosen, sign)


def to_even(bits: ir.Value, digits: int, less: int = 0) -> ir.Value:
    """Bits with half of their last digits added, less a tie's where it is odd."""
    kind = bits.type
    odd = arith.andi(arith.shrui(bits, filled(kind, digits)), filled(kind, 1))
    half = (1 << digits - 1) - 1
    return arith.addi(bits, arith.addi(odd, filled(kind, half - less)))


def as_type(kind: ir.Type, value: ir.Value) -> ir.Value:
    """The same bits."""
    if isinstance(kind, ir.VectorType) and kind.rank:
        return vector.bitcast(kind, value)
    return arith.bitcast(kind, value)
