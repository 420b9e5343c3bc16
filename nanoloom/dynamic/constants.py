"""Constants of a kernel that are made of its sizes: numbers, shares, and halves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nanoloom.ir.mlir import arith, ir

EXACT = 2**24  # whole numbers below it are f32's
APART = 2**23  # below it no two numbers have one share, as f32 has it


@dataclass(frozen=True)
class Wholes:
    """A whole number for each sample of sizes.

    are_shares: the constants are 1 by them, as a mean's are that multiplies.
    are_doubled: the constants are half of them, as borders between pixels are.
    """

    numbers: Sequence[int]
    are_shares: bool = False
    are_doubled: bool = False

    def of(self, number: ir.Value, kind: ir.Type) -> ir.Value:
        """The constant that an index stands for, of a kind."""
        made = as_number(number, kind)
        if self.are_doubled:
            return arith.mulf(made, arith.constant(kind, 0.5))
        return arith.divf(arith.constant(kind, 1.0), made) if self.are_shares else made


def wholes_of(constants: Sequence[ir.Attribute]) -> Wholes | None:
    """What whole numbers some constants are; None where they are none.

    A mean's divisor is a number of elements, which f32 has exactly, and its factor 1 by
    such a number, which is told from its neighbours'.
    """
    if all(isinstance(a, ir.IntegerAttr) for a in constants):
        return Wholes([ir.IntegerAttr(a).value for a in constants])
    numbers = [ir.FloatAttr(a).value for a in constants]
    if all(x.is_integer() and abs(x) < EXACT for x in numbers):
        return Wholes([int(x) for x in numbers])
    if all((2 * x).is_integer() and abs(x) < APART for x in numbers):
        return Wholes([int(2 * x) for x in numbers], are_doubled=True)
    shares = [round(1 / x) if 0 < x <= 1 else 0 for x in numbers]
    single = isinstance(constants[0].type, ir.F32Type)  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
    one = np.float32(1) if single else np.float64(1)
    for x, n in zip(numbers, shares, strict=True):
        if not 0 < n < APART or x != float(one / type(one)(n)):
            return None
    return Wholes(shares, are_shares=True)


def as_number(value: ir.Value, kind: ir.Type) -> ir.Value:
    """An index as a number of a kind; as f32 rounded, as a constant of it would be."""
    if isinstance(kind, ir.IndexType):
        return value
    if isinstance(kind, ir.IntegerType):
        return arith.index_cast(kind, value)
    whole = arith.index_cast(ir.IntegerType.get_signless(64), value)
    return arith.sitofp(kind, whole)
