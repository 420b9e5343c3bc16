"""Scalars inside a linalg body: an MLIR value with its ONNX element type.

MLIR integers carry no sign, so the numpy dtype beside the value says which instruction
an operation means (`divsi` or `divui`).  bool is i1 here and one byte in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from nanoloom.ir.mlir import arith, ir, math

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
BOOL = np.dtype(np.bool_)
FLOATS = (np.dtype(np.float16), BFLOAT16, np.dtype(np.float32), np.dtype(np.float64))
Number = int | float | bool
NONPOSITIVE = "nanoloom.nonpositive"  # on math.exp: its operand is at most 0, or NaN


def is_float(dtype: np.dtype) -> bool:
    return dtype in FLOATS


def is_unsigned(dtype: np.dtype) -> bool:
    return dtype.kind == "u" or dtype == BOOL


def compute_type(dtype: np.dtype) -> ir.Type:
    """The MLIR type of a scalar of this dtype inside a body."""
    match dtype.name:
        case "float64":
            return ir.F64Type.get()
        case "float32":
            return ir.F32Type.get()
        case "float16":
            return ir.F16Type.get()
        case "bfloat16":
            return ir.BF16Type.get()
        case "bool":
            return ir.IntegerType.get_signless(1)
        case _:
            return ir.IntegerType.get_signless(dtype.itemsize * 8)


def storage_type(dtype: np.dtype) -> ir.Type:
    """The MLIR element type of a tensor of this dtype: bool takes one byte."""
    return ir.IntegerType.get_signless(8) if dtype == BOOL else compute_type(dtype)


def constant(value: Number, dtype: np.dtype) -> Scalar:
    """A constant of this dtype; integers wrap as numpy's do."""
    kind = compute_type(dtype)
    if is_float(dtype):
        exact = float(np.array(value).astype(dtype).astype(np.float64))
        return Scalar(arith.constant(kind, exact), dtype)
    signed = np.array(value).astype(dtype)
    bits = dtype.itemsize * 8
    number = int(signed) & ((1 << bits) - 1) if dtype != BOOL else int(bool(signed))
    if dtype != BOOL and number >= 1 << (bits - 1):
        number -= 1 << bits
    return Scalar(arith.constant(kind, number), dtype)


def _pick(dtype: np.dtype, floats: object, signed: object, unsigned: object) -> object:
    if is_float(dtype):
        return floats
    return unsigned if is_unsigned(dtype) else signed


@dataclass(frozen=True)
class Scalar:
    """One value inside a body, with numpy's operators."""

    value: ir.Value
    dtype: np.dtype

    def matching(self, other: Scalar | Number) -> Scalar:
        if not isinstance(other, Scalar):
            return constant(other, self.dtype)
        assert other.dtype == self.dtype, (self.dtype, other.dtype)
        return other

    def _arith(
        self, other: Scalar | Number, floats: str, signed: str, unsigned: str
    ) -> Scalar:
        right = self.matching(other)
        name = _pick(self.dtype, floats, signed, unsigned)
        return Scalar(getattr(arith, str(name))(self.value, right.value), self.dtype)

    def _reversed(self, other: Number) -> Scalar:
        return constant(other, self.dtype)

    def __add__(self, other: Scalar | Number) -> Scalar:
        return self._arith(other, "addf", "addi", "addi")

    def __radd__(self, other: Number) -> Scalar:
        return self._reversed(other) + self

    def __sub__(self, other: Scalar | Number) -> Scalar:
        return self._arith(other, "subf", "subi", "subi")

    def __rsub__(self, other: Number) -> Scalar:
        return self._reversed(other) - self

    def __mul__(self, other: Scalar | Number) -> Scalar:
        return self._arith(other, "mulf", "muli", "muli")

    def __rmul__(self, other: Number) -> Scalar:
        return self._reversed(other) * self

    def __truediv__(self, other: Scalar | Number) -> Scalar:
        """Float division; integers divide towards zero, as ONNX Div does."""
        return self._arith(other, "divf", "divsi", "divui")

    def __rtruediv__(self, other: Number) -> Scalar:
        return self._reversed(other) / self

    def remainder(self, other: Scalar | Number) -> Scalar:
        """C's fmod / %: the sign of the dividend."""
        return self._arith(other, "remf", "remsi", "remui")

    def __and__(self, other: Scalar | Number) -> Scalar:
        return self._arith(other, "andi", "andi", "andi")

    def __or__(self, other: Scalar | Number) -> Scalar:
        return self._arith(other, "ori", "ori", "ori")

    def __xor__(self, other: Scalar | Number) -> Scalar:
        return self._arith(other, "xori", "xori", "xori")

    def __lshift__(self, other: Scalar | Number) -> Scalar:
        return self._arith(other, "shli", "shli", "shli")

    def __rshift__(self, other: Scalar | Number) -> Scalar:
        return self._arith(other, "shrsi", "shrsi", "shrui")

    def __invert__(self) -> Scalar:
        return self ^ (1 if self.dtype == BOOL else -1)

    def __neg__(self) -> Scalar:
        if is_float(self.dtype):
            return Scalar(arith.negf(self.value), self.dtype)
        return constant(0, self.dtype) - self

    def _compare(
        self, other: Scalar | Number, floats: str, signed: str, unsigned: str
    ) -> Scalar:
        right = self.matching(other)
        if is_float(self.dtype):
            predicate = getattr(arith.CmpFPredicate, floats)
            return Scalar(arith.cmpf(predicate, self.value, right.value), BOOL)
        name = unsigned if is_unsigned(self.dtype) else signed
        predicate = getattr(arith.CmpIPredicate, name)
        return Scalar(arith.cmpi(predicate, self.value, right.value), BOOL)

    def __lt__(self, other: Scalar | Number) -> Scalar:
        return self._compare(other, "OLT", "slt", "ult")

    def __le__(self, other: Scalar | Number) -> Scalar:
        return self._compare(other, "OLE", "sle", "ule")

    def __gt__(self, other: Scalar | Number) -> Scalar:
        return self._compare(other, "OGT", "sgt", "ugt")

    def __ge__(self, other: Scalar | Number) -> Scalar:
        return self._compare(other, "OGE", "sge", "uge")

    def equal(self, other: Scalar | Number) -> Scalar:
        return self._compare(other, "OEQ", "eq", "eq")

    def differs(self, other: Scalar | Number) -> Scalar:
        return self._compare(other, "UNE", "ne", "ne")

    def is_nan(self) -> Scalar:
        predicate = arith.CmpFPredicate.UNO
        return Scalar(arith.cmpf(predicate, self.value, self.value), BOOL)

    def maximum(self, other: Scalar | Number) -> Scalar:
        """The larger one; NaN if either is NaN.

        Beside a constant it is one instruction: select(constant > x, constant, x).
        """
        if is_float(self.dtype) and not isinstance(other, Scalar) and other == other:
            bound = self._reversed(other)
            return select(bound > self, bound, self)
        return self._arith(other, "maximumf", "maxsi", "maxui")

    def minimum(self, other: Scalar | Number) -> Scalar:
        """The smaller one; NaN if either is NaN."""
        if is_float(self.dtype) and not isinstance(other, Scalar) and other == other:
            bound = self._reversed(other)
            return select(bound < self, bound, self)
        return self._arith(other, "minimumf", "minsi", "minui")

    def absolute(self) -> Scalar:
        if is_float(self.dtype):
            return Scalar(math.absf(self.value), self.dtype)
        if is_unsigned(self.dtype):
            return self
        return Scalar(math.absi(self.value), self.dtype)

    def math(self, name: str, *others: Scalar | Number) -> Scalar:
        """A float function of the MLIR math dialect: exp, tanh, erf, floor, fma ..."""
        rest = [self.matching(other).value for other in others]
        return Scalar(getattr(math, name)(self.value, *rest), self.dtype)

    def exp_nonpositive(self) -> Scalar:
        """exp of what is at most 0 or NaN: cheaper; 0 where it would be denormal."""
        grown = math.ExpOp(self.value)
        grown.operation.attributes[NONPOSITIVE] = ir.UnitAttr.get()
        return Scalar(grown.result, self.dtype)

    def times_plus(self, factor: Scalar, added: Scalar | Number) -> Scalar:
        """self * factor + added, floats; in one rounding where that is as fast."""
        may = arith.FastMathFlags.contract
        product = arith.mulf(self.value, factor.value, fastmath=may)
        more = self.matching(added).value
        return Scalar(arith.addf(product, more, fastmath=may), self.dtype)

    def bitcast(self, dtype: np.dtype) -> Scalar:
        kind, given = compute_type(dtype), self.value.type
        if isinstance(given, ir.VectorType):
            kind = ir.VectorType.get(given.shape, kind)
        return Scalar(arith.bitcast(kind, self.value), dtype)

    def index(self) -> ir.Value:
        """An integer as an MLIR index."""
        cast = arith.index_castui if is_unsigned(self.dtype) else arith.index_cast
        return cast(ir.IndexType.get(), self.value)

    def cast(self, dtype: np.dtype) -> Scalar:
        """Convert as numpy's astype does inside the range of the new type."""
        if dtype == self.dtype:
            return self
        if dtype == BOOL:
            return self.differs(0)
        if is_float(self.dtype) and is_float(dtype):
            return _float_to_float(self, dtype)
        kind = compute_type(dtype)
        if is_float(self.dtype) and dtype.itemsize < 4:  # wide, then wrap
            return self.cast(np.dtype(np.int32)).cast(dtype)
        if is_float(self.dtype):
            convert = arith.fptoui if is_unsigned(dtype) else arith.fptosi
            return Scalar(convert(kind, self.value), dtype)
        if dtype == BFLOAT16:  # as ml_dtypes does
            return self.cast(np.dtype(np.float32)).cast(dtype)
        if is_float(dtype):
            convert = arith.uitofp if is_unsigned(self.dtype) else arith.sitofp
            return Scalar(convert(kind, self.value), dtype)
        return _integer_to_integer(self, dtype)


def _float_to_float(x: Scalar, dtype: np.dtype) -> Scalar:
    kind = compute_type(dtype)
    if dtype.itemsize > x.dtype.itemsize:
        return Scalar(arith.extf(kind, x.value), dtype)
    if x.dtype.itemsize == 8 and dtype.itemsize == 2:
        return _round_to_odd(x).cast(dtype)
    if dtype.itemsize < x.dtype.itemsize:
        return Scalar(arith.truncf(kind, x.value), dtype)
    return x.cast(np.dtype(np.float32)).cast(dtype)  # f16 <-> bf16


def _round_to_odd(x: Scalar) -> Scalar:
    """f64 to f32, inexact results to the odd neighbour: then a second one is right.

    Nearest twice would be wrong where the first rounding lands on a tie of the second.
    """
    near = x.cast(np.dtype(np.float32))
    back = near.cast(x.dtype)
    bits = near.bitcast(np.dtype(np.int32))
    below = select(back.absolute() > x.absolute(), bits - 1, bits)  # towards zero
    inexact = (back < x) | (back > x)  # false for NaN
    return select(inexact, below | 1, bits).bitcast(np.dtype(np.float32))


def _integer_to_integer(x: Scalar, dtype: np.dtype) -> Scalar:
    kind, have = compute_type(dtype), compute_type(x.dtype)
    if ir.IntegerType(kind).width == ir.IntegerType(have).width:
        return Scalar(x.value, dtype)
    if ir.IntegerType(kind).width < ir.IntegerType(have).width:
        return Scalar(arith.trunci(kind, x.value), dtype)
    extend = arith.extui if is_unsigned(x.dtype) else arith.extsi
    return Scalar(extend(kind, x.value), dtype)


def select(condition: Scalar, yes: Scalar, no: Scalar | Number) -> Scalar:
    """yes where condition holds, else no."""
    other = yes.matching(no)
    return Scalar(arith.select(condition.value, yes.value, other.value), yes.dtype)


def from_index(value: ir.Value) -> Scalar:
    """An MLIR index as an int64."""
    dtype = np.dtype(np.int64)
    return Scalar(arith.index_cast(compute_type(dtype), value), dtype)
