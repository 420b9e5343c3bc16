"""Products of 16-bit floats that one instruction adds to f32, on vectors of any width.

    fma(broadcast(extf(number)), extf(vector), sums)  ->  vfwmacc, vfwmaccbf16

with Zvfh and Zvfbfwma.  LLVM writes it where the vector has one use only.
"""

from __future__ import annotations

from nanoloom.mlir import arith, ir, named
from nanoloom.target.facts import Target
from nanoloom.target.instructions.instruction import Instruction
from nanoloom.target.instructions.riscv64 import WIDENING
from nanoloom.vector.nanokernel.instructions import emit


def use_widening_products(module: ir.Module, target: Target) -> None:
    """Write products with the target's instruction, where it has one."""
    if not target.vector.scalable or not any(map(target.multiplies, WIDENING)):
        return
    for op in named(module, "vector.fma"):
        left, right, sums = op.operation.operands
        number, numbers = source_of(left, "vector.broadcast"), narrow(right)
        number = None if number is None else narrow(number)
        if number is None or numbers is None or not is_product(number, numbers):
            continue
        element = str(number.type)
        if target.multiplies(element):
            with ir.InsertionPoint(op), op.operation.location:
                made = multiplied(WIDENING[element], number, numbers, sums)
            op.operation.results[0].replace_all_uses_with(made)
            op.operation.erase()


def source_of(value: ir.Value, name: str) -> ir.Value | None:
    """What an operation of this name makes a value of."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != name:
        return None
    return owner.operands[0]


def narrow(value: ir.Value) -> ir.Value | None:
    """What f32 were extended from."""
    return source_of(value, "arith.extf")


def is_product(number: ir.Value, numbers: ir.Value) -> bool:
    """Whether these are a number and a vector of any width of the same type."""
    kind = numbers.type
    if not isinstance(kind, ir.VectorType) or kind.rank != 1:
        return False
    return all(kind.scalable_dims) and kind.element_type == number.type


def multiplied(
    named: Instruction, number: ir.Value, numbers: ir.Value, sums: ir.Value
) -> ir.Value:
    kind, i64 = ir.VectorType(sums.type), ir.IntegerType.get_signless(64)
    words = [arith.constant(i64, x) for x in named.words]
    full = f"{named.function}.nxv{kind.shape[0]}f32.{number.type}"
    return emit(full, kind, [sums, number, numbers, *words])
