"""The meanings of instructions (target/instructions/meanings.py) as vector code.

`in_parts` takes the place of an instruction on a machine that lacks it: its reference
loop, written for numpy, runs on `Traced` vectors, which note what is done with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from nanoloom.ir.mlir import arith, ir, llvm, vector
from nanoloom.target.instructions import meanings, x86
from nanoloom.target.instructions.choose import INSTRUCTIONS
from nanoloom.target.instructions.instruction import Instruction

Operands = list[ir.Value]
DTYPES = {
    "s8": np.int8, "u8": np.uint8, "s16": np.int16, "s32": np.int32, "f32": np.float32,
    "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16,
}  # fmt: skip


def in_parts(name: str, result: ir.Type, operands: Operands) -> ir.Value:
    """In place of instructions.emit: the definition of an instruction."""
    known = instruction_named(name)
    assert known.meaning is not None, name
    given: list[Any] = []
    for type_, value in zip(known.operands, operands, strict=True):
        given.append(argument(type_, value))
    if known.meaning is meanings.ranged:  # without what masked lanes keep, and the mask
        given = given[:3]
    elif known.meaning in (meanings.larger, meanings.smaller):  # without a rounding
        given = given[:2]
    made = known.meaning(*given).value
    return made if made.type == result else vector.bitcast(result, made)


def instruction_named(name: str) -> Instruction:
    """Raises KeyError, with the name, where nobody has said what it does."""
    for known in INSTRUCTIONS:
        if known.function == name:
            return known
    raise KeyError(name)


def argument(type_: str, value: ir.Value) -> Any:
    """A vector, numbers in memory, or an immediate number."""
    kind, _, count = type_.partition("*")
    if count.endswith("&"):
        buffer = ir.MemRefType(value.type)
        zeros = [arith.constant(ir.IndexType.get(), 0)] * buffer.rank
        whole = ir.VectorType.get([buffer.shape[-1]], buffer.element_type)
        return Traced(vector.load(whole, value, zeros), DTYPES[kind])
    if count:
        return Traced(value, DTYPES[kind])
    return int(ir.IntegerAttr(value.owner.attributes["value"]).value)  # type: ignore[union-attr] - a constant


class Traced:
    """A vector that does what numpy's arrays do, as far as meanings ask for it."""

    def __init__(self, value: ir.Value, dtype: Any) -> None:
        self.value, self.dtype = value, np.dtype(dtype)

    @property
    def size(self) -> int:
        return self.kind.shape[0]

    @property
    def kind(self) -> ir.VectorType:
        return ir.VectorType(self.value.type)

    @property
    def is_float(self) -> bool:
        return isinstance(self.kind.element_type, ir.FloatType)

    def like(self, value: ir.Value) -> Traced:
        return Traced(value, self.dtype)

    def of(self, other: Any) -> ir.Value:
        """Another operand; a number in all lanes."""
        if isinstance(other, Traced):
            return other.value
        number = arith.constant(self.kind.element_type, other)
        return vector.broadcast(self.kind, number)

    def __getitem__(self, at: slice) -> Traced:
        places = list(range(*at.indices(self.size)))
        made = ir.VectorType.get([len(places)], self.kind.element_type)
        shuffled = vector.ShuffleOp(self.value, self.value, places, results=[made])
        return self.like(shuffled.result)

    def astype(self, dtype: Any) -> Traced:
        kind = ir.VectorType.get([self.size], element(np.dtype(dtype)))
        if self.is_float:
            narrows = np.dtype(dtype).itemsize < self.dtype.itemsize
            cast = arith.truncf if narrows else arith.extf
            return Traced(cast(kind, self.value), dtype)
        extended = arith.extsi if self.dtype.kind == "i" else arith.extui
        return Traced(extended(kind, self.value), dtype)

    def view(self, dtype: Any) -> Traced:
        size = self.size * self.dtype.itemsize // np.dtype(dtype).itemsize
        kind = ir.VectorType.get([size], element(np.dtype(dtype)))
        return Traced(vector.bitcast(kind, self.value), dtype)

    def __add__(self, other: Any) -> Traced:
        made = arith.addf if self.is_float else arith.addi
        return self.like(made(self.value, self.of(other)))

    def __mul__(self, other: Any) -> Traced:
        made = arith.mulf if self.is_float else arith.muli
        return self.like(made(self.value, self.of(other)))

    def __and__(self, other: Any) -> Traced:
        return self.like(arith.andi(self.value, self.of(other)))

    def __or__(self, other: Any) -> Traced:
        return self.like(arith.ori(self.value, self.of(other)))

    def __invert__(self) -> Traced:
        return self.like(arith.xori(self.value, self.of(-1)))

    def __gt__(self, other: Any) -> Traced:
        return self.compared("OGT", "sgt", other)

    def __lt__(self, other: Any) -> Traced:
        return self.compared("OLT", "slt", other)

    def __eq__(self, other: object) -> Any:
        return self.compared("OEQ", "eq", other)

    def __ne__(self, other: object) -> Any:
        return self.compared("UNE", "ne", other)

    __hash__ = None  # type: ignore[assignment] - as numpy's arrays

    def compared(self, floats: str, integers: str, other: Any) -> Traced:
        if self.is_float:
            order = getattr(arith.CmpFPredicate, floats)
            return Traced(arith.cmpf(order, self.value, self.of(other)), bool)
        order = getattr(arith.CmpIPredicate, integers)
        return Traced(arith.cmpi(order, self.value, self.of(other)), bool)

    def reshape(self, *shape: int) -> Traced:
        """Rows of 16 bytes, and back: they are numbers of one vector still."""
        assert shape in ((-1,), (-1, meanings.PIECE))
        return self

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Traced:
        del types, kwargs
        return FUNCTIONS[function](*args)


def where(chosen: Traced, one: Traced, other: Traced) -> Traced:
    return one.like(arith.select(chosen.value, one.value, other.value))


def repeat(one: Traced, count: int) -> Traced:
    wide = ir.VectorType.get([count], one.kind.element_type)
    return one.like(vector.broadcast(wide, vector.extract(one.value, [], [0])))


def take_along_axis(table: Traced, places: Traced, axis: int) -> Traced:
    """Of each 16 bytes those at places below 16: the plain shuffle of this machine."""
    assert axis == 1
    kind, piece = table.kind, meanings.PIECE
    part = ir.VectorType.get([piece], kind.element_type)
    made = table.of(0)
    for first in range(0, table.size, piece):
        lanes = list(range(first, first + piece))
        given = [vector.shuffle(x.value, x.value, lanes) for x in (table, places)]
        plain = x86.SHUFFLES[0].function
        found = llvm.call_intrinsic(part, plain, given, [], [])  # type: ignore[arg-type] - MLIR's stubs want results
        made = vector.insert_strided_slice(found, made, [first], [1])
    return table.like(made)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Traced]] = {
    np.where: where,
    np.repeat: repeat,
    np.take_along_axis: take_along_axis,
}


def element(dtype: np.dtype[Any]) -> ir.Type:
    """MLIR's type of a number; its integers have no signs."""
    if dtype == ml_dtypes.bfloat16:
        return ir.BF16Type.get()
    if dtype.kind == "f":
        kinds = {2: ir.F16Type, 4: ir.F32Type, 8: ir.F64Type}
        return kinds[dtype.itemsize].get()
    return ir.IntegerType.get_signless(8 * dtype.itemsize)
