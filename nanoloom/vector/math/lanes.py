"""`Lanes`: an MLIR scalar or vector under Python's arithmetic, one operation each.

The expansions read as formulas and say nothing of the type: the same lines build f32
scalars, vector<16xf32>, vector<4x[4]xf32>.  Numbers become splat constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp

from nanoloom.ir.mlir import arith, ir, made_by, math
from nanoloom.vector.never_nan import number_in
from nanoloom.vector.widths import element_of, with_element

Number = int | float


@dataclass(frozen=True)
class FloatFormat:
    """A binary format of IEEE 754.

    fraction: bits of the fraction, above which the exponent stands; bias: of it.
    """

    fraction: int
    bias: int

    @property
    def rounder(self) -> float:
        """Added to a number, it leaves an integer in the low bits of the sum."""
        return 1.5 * 2.0**self.fraction

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def exponent_mask(self) -> int:
        """Sign and exponent, as a signed integer."""
        return -(1 << self.fraction)

    def bits_of(self, number: float) -> int:
        """A normal number above 0 as its bits."""
        mantissa, exponent = frexp(number)
        fraction = round((2 * mantissa - 1) * 2**self.fraction)
        return (exponent - 1 + self.bias << self.fraction) + fraction


FORMATS = {32: FloatFormat(23, 127), 64: FloatFormat(52, 1023)}


@dataclass(frozen=True, slots=True)
class Lanes:
    """One value of element type f32, f64, i32, i64 or i1, scalar or vector."""

    value: ir.Value

    @property
    def kind(self) -> ir.Type:
        return self.value.type

    @property
    def width(self) -> int:
        """Bits of a float."""
        return ir.FloatType(element_of(self.kind)).width

    @property
    def format(self) -> FloatFormat:
        """Where the exponent stands in these floats."""
        return FORMATS[self.width]

    @property
    def is_float(self) -> bool:
        return isinstance(element_of(self.kind), ir.FloatType)

    def splat(self, number: Number) -> Lanes:
        """A constant of this value's type in every lane."""
        element = element_of(self.kind)
        if self.is_float:
            scalar = ir.FloatAttr.get(element, float(number))
        else:
            scalar = ir.IntegerAttr.get(element, int(number))
        if isinstance(self.kind, ir.VectorType):
            splat = ir.DenseElementsAttr.get_splat(self.kind, scalar)
            return Lanes(arith.constant(self.kind, splat))
        return Lanes(arith.constant(self.kind, scalar))

    def constant(self) -> float | None:
        """The number in every lane if that is known here, else None."""
        value = self.value
        while (wide := made_by(value, "vector.broadcast")) is not None:
            value = wide.operands[0]
        op = made_by(value, "arith.constant")
        return None if op is None else number_in(op.attributes["value"])

    def _other(self, other: Lanes | Number) -> ir.Value:
        return other.value if isinstance(other, Lanes) else self.splat(other).value

    def __add__(self, other: Lanes | Number) -> Lanes:
        build = arith.addf if self.is_float else arith.addi
        return Lanes(build(self.value, self._other(other)))

    def __sub__(self, other: Lanes | Number) -> Lanes:
        build = arith.subf if self.is_float else arith.subi
        return Lanes(build(self.value, self._other(other)))

    def __rsub__(self, other: Number) -> Lanes:
        return self.splat(other) - self

    def __mul__(self, other: Lanes | Number) -> Lanes:
        return Lanes(arith.mulf(self.value, self._other(other)))

    def __truediv__(self, other: Lanes | Number) -> Lanes:
        return Lanes(arith.divf(self.value, self._other(other)))

    def __rtruediv__(self, other: Number) -> Lanes:
        return self.splat(other) / self

    def __neg__(self) -> Lanes:
        return Lanes(arith.negf(self.value))

    def __abs__(self) -> Lanes:
        return Lanes(math.absf(self.value))

    def __and__(self, other: Lanes | int) -> Lanes:
        return Lanes(arith.andi(self.value, self._other(other)))

    def __or__(self, other: Lanes | int) -> Lanes:
        return Lanes(arith.ori(self.value, self._other(other)))

    def __xor__(self, other: Lanes | int) -> Lanes:
        return Lanes(arith.xori(self.value, self._other(other)))

    def and_not(self, other: Lanes) -> Lanes:
        """Masks: self and not other."""
        return self & (other ^ 1)

    def __lshift__(self, count: int) -> Lanes:
        return Lanes(arith.shli(self.value, self._other(count)))

    def __rshift__(self, count: int) -> Lanes:
        """Arithmetic shift: the sign is copied in."""
        return Lanes(arith.shrsi(self.value, self._other(count)))

    def shift_right_logical(self, count: int) -> Lanes:
        return Lanes(arith.shrui(self.value, self._other(count)))

    def _compare(self, name: str, other: Lanes | Number) -> Lanes:
        kinds = arith.CmpFPredicate if self.is_float else arith.CmpIPredicate
        build = arith.cmpf if self.is_float else arith.cmpi
        return Lanes(build(getattr(kinds, name), self.value, self._other(other)))

    def __lt__(self, other: Lanes | Number) -> Lanes:
        """Ordered for floats (false on NaN), signed for integers."""
        return self._compare("OLT" if self.is_float else "slt", other)

    def __gt__(self, other: Lanes | Number) -> Lanes:
        return self._compare("OGT" if self.is_float else "sgt", other)

    def __ge__(self, other: Lanes | Number) -> Lanes:
        return self._compare("OGE" if self.is_float else "sge", other)

    def equals(self, other: Lanes | Number) -> Lanes:
        """Lane mask of equality, false on NaN (`==` stays Python's identity)."""
        return self._compare("OEQ" if self.is_float else "eq", other)

    def differs(self, other: Lanes | Number) -> Lanes:
        """Lane mask of inequality, true on NaN."""
        return self._compare("UNE" if self.is_float else "ne", other)

    def is_nan(self) -> Lanes:
        return self._compare("UNO", self)

    def sqrt(self) -> Lanes:
        """Correctly rounded on every target."""
        return Lanes(math.sqrt(self.value))

    def round(self) -> Lanes:
        """To the nearest integer, ties to even, in the same float type."""
        return Lanes(math.roundeven(self.value))

    def bits(self) -> Lanes:
        """The bits of floats as integers of the same width."""
        integer = ir.IntegerType.get_signless(self.width)
        return Lanes(arith.bitcast(with_element(self.kind, integer), self.value))

    def as_float(self) -> Lanes:
        """Integers as the bits of floats of the same width."""
        width = ir.IntegerType(element_of(self.kind)).width
        element = ir.F32Type.get() if width == 32 else ir.F64Type.get()
        return Lanes(arith.bitcast(with_element(self.kind, element), self.value))

    def to_float(self) -> Lanes:
        """Signed i32 to f32 by value; i64 to f64, of less than 2^51."""
        if ir.IntegerType(element_of(self.kind)).width == 64:
            # Few instruction sets convert i64: the number as low bits of a larger one.
            rounder = FORMATS[64].rounder
            return (self + FORMATS[64].bits_of(rounder)).as_float() - rounder
        kind = with_element(self.kind, ir.F32Type.get())
        return Lanes(arith.sitofp(kind, self.value))

    def to_int(self) -> Lanes:
        """f32 to i32 by value, towards zero; undefined outside of i32."""
        kind = with_element(self.kind, ir.IntegerType.get_signless(32))
        return Lanes(arith.fptosi(kind, self.value))

    def widen(self) -> Lanes:
        """f32 to f64, exact."""
        return Lanes(arith.extf(with_element(self.kind, ir.F64Type.get()), self.value))

    def narrow(self) -> Lanes:
        """f64 to f32, rounded to nearest even; i64 to i32, the low half."""
        if self.is_float:
            kind = with_element(self.kind, ir.F32Type.get())
            return Lanes(arith.truncf(kind, self.value))
        kind = with_element(self.kind, ir.IntegerType.get_signless(32))
        return Lanes(arith.trunci(kind, self.value))


def fma(a: Lanes, b: Lanes | Number, c: Lanes | Number) -> Lanes:
    """a * b + c, rounded once."""
    right = b if isinstance(b, Lanes) else a.splat(b)
    added = c if isinstance(c, Lanes) else a.splat(c)
    return Lanes(math.fma(a.value, right.value, added.value))


def select(mask: Lanes, yes: Lanes | Number, no: Lanes) -> Lanes:
    """Lane by lane: `yes` where the mask is set, `no` elsewhere."""
    chosen = yes if isinstance(yes, Lanes) else no.splat(yes)
    return Lanes(arith.select(mask.value, chosen.value, no.value))


def copysign(magnitude: Lanes, sign: Lanes) -> Lanes:
    return Lanes(math.copysign(magnitude.value, sign.value))


def at_most(x: Lanes, bound: float) -> Lanes:
    """min(x, bound) that passes NaN: this compare and select is one x86 instruction."""
    return select(x > bound, bound, x)


def at_least(x: Lanes, bound: float) -> Lanes:
    """max(x, bound) that passes NaN."""
    return select(x < bound, bound, x)


def horner(x: Lanes, coefficients: Sequence[float]) -> Lanes:
    """c[0] + c[1] x + c[2] x^2 + ..., one fma for each coefficient after the last."""
    *lower, highest = coefficients
    total = x.splat(highest)
    for coefficient in reversed(lower):
        total = fma(total, x, coefficient)
    return total


def estrin(x: Lanes, square: Lanes, coefficients: Sequence[float]) -> Lanes:
    """The same by pairs, which do not wait for each other.  square: x^2."""
    pairs = [coefficients[n : n + 2] for n in range(0, len(coefficients), 2)]
    parts = [horner(x, pair) for pair in pairs]
    total = parts[-1]
    for part in reversed(parts[:-1]):
        total = fma(total, square, part)
    return total
