"""Vectors times a number, added to wider sums by one instruction of any width.

    fma(broadcast(ext(number)), ext(vector), sums)   ->   one instruction of the three

where the table of instructions has one for these types.  LLVM writes it where the
vector has one use only.
"""

from __future__ import annotations

from nanoloom.ir.mlir import ir, made_by, named
from nanoloom.target.facts import Target
from nanoloom.target.instructions.choose import number_product
from nanoloom.target.instructions.instruction import Instruction
from nanoloom.vector.nanokernel.instructions import emit, operands_of


def use_number_products(module: ir.Module, target: Target) -> None:
    """Write products with the target's instruction, where it has one."""
    if not target.vector.scalable:
        return
    for op in named(module, "vector.fma"):
        one, other, sums = op.operation.operands
        number, numbers = source_of(one, "vector.broadcast"), narrow(other)
        number = None if number is None else narrow(number)
        if number is None or numbers is None or not is_scalable_vector(numbers):
            continue
        right, total = (ir.VectorType(x.type).element_type for x in (numbers, sums))
        found = number_product(target, str(number.type), str(right), str(total))
        if found is not None:
            with ir.InsertionPoint(op), op.operation.location:
                made = multiplied(found, number, numbers, sums)
            op.operation.results[0].replace_all_uses_with(made)
            op.operation.erase()


def source_of(value: ir.Value, name: str) -> ir.Value | None:
    """What an operation of this name makes a value of."""
    owner = made_by(value, name)
    return None if owner is None else owner.operands[0]


def narrow(value: ir.Value) -> ir.Value | None:
    """What wider floats were extended from."""
    return source_of(value, "arith.extf")


def is_scalable_vector(value: ir.Value) -> bool:
    kind = value.type
    if not isinstance(kind, ir.VectorType) or kind.rank != 1:
        return False
    return all(kind.scalable_dims)


def multiplied(
    named: Instruction, number: ir.Value, numbers: ir.Value, sums: ir.Value
) -> ir.Value:
    kind = ir.VectorType(sums.type)
    full = f"{named.function}.nxv{kind.shape[0]}{named.sums}.{number.type}"
    return emit(full, kind, operands_of(named, [sums, number, numbers], named.words))
