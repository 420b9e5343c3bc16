"""What the instructions of x86 do, as arithmetic on lanes: one row an instruction.

`in_parts` takes the place of the instruction itself on a machine that lacks it, and
test_instruction_meanings.py holds each against the instruction where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from nanoloom.mlir import arith, ir, llvm, vector
from nanoloom.target.instructions.choose import DOTS, GROUP, PAIR_PRODUCTS
from nanoloom.vector.nanokernel.instructions import EVEN, LOADS, ODD
from nanoloom.vector.table_lookups import PIECE, SHUFFLES

Operands = list[ir.Value]
Meaning = Callable[[str, ir.VectorType, Operands], ir.Value]


def in_parts(name: str, result: ir.Type, operands: Operands) -> ir.Value:
    """In place of instructions.emit: the definition of an instruction."""
    return meaning_of(name)(name, ir.VectorType(result), operands)


def meaning_of(name: str) -> Meaning:
    """Raises KeyError, with the name, where nobody has said what it does."""
    for pattern, meaning in MEANINGS:
        if re.fullmatch(pattern, name):
            return meaning
    raise KeyError(name)


# ---- sums of products


def dot(name: str, kind: ir.VectorType, operands: Operands) -> ir.Value:
    (types,) = {(x.left, x.right) for x in DOTS if x.function == name}
    assert kind == operands[0].type
    return products(operands[0], operands[1:], types)


def pair_products(name: str, kind: ir.VectorType, operands: Operands) -> ir.Value:
    del name
    zero = vector.broadcast(kind, arith.constant(kind.element_type, 0))
    return products(zero, operands, ("s16", "s16"))


def products(sums: ir.Value, operands: Operands, types: tuple[str, str]) -> ir.Value:
    """sums + the products of all numbers of a lane."""
    kind = ir.VectorType(sums.type)
    group = GROUP.get(types[0], 2)
    for g in range(group):
        one, other = (
            extended(kind, every(x, g, group), name)
            for x, name in zip(operands, types, strict=True)
        )
        if types[0] == "bf16":
            sums = arith.addf(sums, arith.mulf(one, other))
        else:
            sums = arith.addi(sums, arith.muli(one, other))
    return sums


def every(value: ir.Value, first: int, step: int) -> ir.Value:
    """Numbers first, first + step, first + 2 * step ... of a vector."""
    kind = ir.VectorType(value.type)
    places = list(range(first, kind.shape[0], step))
    made = ir.VectorType.get([len(places)], kind.element_type)
    return vector.ShuffleOp(value, value, places, results=[made]).result


def extended(kind: ir.VectorType, value: ir.Value, name: str) -> ir.Value:
    if name == "bf16":
        return arith.extf(kind, value)
    return (arith.extsi if name[0] == "s" else arith.extui)(kind, value)


# ---- numbers from memory


def converted(name: str, kind: ir.VectorType, operands: Operands) -> ir.Value:
    """bf16 numbers from memory as f32: those with an even place, odd, or one of all."""
    (memory,) = operands
    buffer = ir.MemRefType(memory.type)
    zeros = [arith.constant(ir.IndexType.get(), 0)] * buffer.rank
    count = buffer.shape[-1]
    whole = ir.VectorType.get([count], buffer.element_type)
    numbers = vector.load(whole, memory, zeros)
    if name in (EVEN, ODD):
        assert count == 2 * kind.shape[0]
        return arith.extf(kind, every(numbers, int(name == ODD), 2))
    assert count == 1
    wide = ir.VectorType.get(kind.shape, buffer.element_type)
    return arith.extf(kind, vector.broadcast(wide, vector.extract(numbers, [], [0])))


# ---- bits and bytes


def shuffled(name: str, kind: ir.VectorType, operands: Operands) -> ir.Value:
    """Of each 16 bytes those at the places, by the shuffle of 16."""
    del name
    plain = SHUFFLES[PIECE][1]
    part = ir.VectorType.get([PIECE], kind.element_type)
    made = vector.broadcast(kind, arith.constant(kind.element_type, 0))
    for first in range(0, kind.shape[0], PIECE):
        lanes = list(range(first, first + PIECE))
        given = [vector.shuffle(x, x, lanes) for x in operands]
        found = llvm.call_intrinsic(part, plain, given, [], [])  # type: ignore[arg-type] - MLIR's stubs want results
        made = vector.insert_strided_slice(found, made, [first], [1])
    return made


def ternary(name: str, kind: ir.VectorType, operands: Operands) -> ir.Value:
    """Bit by bit, what a table of eight bits has for the bits of three vectors."""
    del name
    *bits, number = operands
    table = int(ir.IntegerAttr(number.owner.attributes["value"]).value)  # type: ignore[union-attr] - a constant
    ones = vector.broadcast(kind, arith.constant(kind.element_type, -1))
    made = vector.broadcast(kind, arith.constant(kind.element_type, 0))
    for row in range(8):
        if not table >> row & 1:
            continue
        here = ones
        for place, value in enumerate(bits):
            wanted = row >> (2 - place) & 1
            here = arith.andi(here, value if wanted else arith.xori(value, ones))
        made = arith.ori(made, here)
    return made


# ---- the larger and the smaller


def extreme(name: str, kind: ir.VectorType, operands: Operands) -> ir.Value:
    """The second one where one is NaN, and of zeros."""
    del kind
    one, other = operands[:2]
    is_max = ".max." in name
    order = arith.CmpFPredicate.OGT if is_max else arith.CmpFPredicate.OLT
    return arith.select(arith.cmpf(order, one, other), one, other)


def ranged(name: str, kind: ir.VectorType, operands: Operands) -> ir.Value:
    """The larger or smaller, of zeros by their signs, the other one of a NaN."""
    del name, kind
    one, other, number = operands[:3]
    choice = int(ir.IntegerAttr(number.owner.attributes["value"]).value)  # type: ignore[union-attr] - a constant
    either = arith.maximumf if choice & 1 else arith.minimumf
    no_number = arith.CmpFPredicate.UNO
    made = arith.select(arith.cmpf(no_number, one, one), other, either(one, other))
    return arith.select(arith.cmpf(no_number, other, other), one, made)


MEANINGS: tuple[tuple[str, Meaning], ...] = (
    *((re.escape(x.function), dot) for x in DOTS),
    *((re.escape(name), pair_products) for _, name in PAIR_PRODUCTS.values()),
    *((re.escape(name), converted) for name in LOADS),
    *((re.escape(name), shuffled) for _, name in SHUFFLES.values()),
    (r"llvm\.x86\.avx512\.pternlog\.d\.(128|256|512)", ternary),
    (r"llvm\.x86\.(sse2?|avx|avx512)\.(max|min)\.p[sd](\.(256|512))?", extreme),
    (r"llvm\.x86\.avx512\.mask\.range\.p[sd]\.(128|256|512)", ranged),
)
