"""The larger or smaller of a vector and a number by x86's own instruction.

select(x > y, x, y)   ->   vmaxps(x, y): y where one is NaN, and of zeros

LLVM finds it, but not behind a store under a mask that is known: it says of the number
that nobody asks for some lanes of it, and no longer sees the same one compared and
chosen.  Two instructions then, in each result of a ReLU.
"""

from __future__ import annotations

from nanoloom.mlir import arith, ir, named
from nanoloom.target.facts import Target
from nanoloom.target.instructions import x86
from nanoloom.target.instructions.instruction import Instruction
from nanoloom.vector.nanokernel import instructions
from nanoloom.vector.range_instructions import bits_of, is_constant, word

WORDS = {
    int(arith.CmpFPredicate.OGT): "max",
    int(arith.CmpFPredicate.OLT): "min",
}
ROUNDING = 4  # as set


def use_min_max_instructions(module: ir.Module, target: Target) -> None:
    """Write choices between whole vectors and a number as one instruction."""
    if target.arch != "x86_64":
        return
    for op in named(module, "arith.select"):
        choice = op.operation
        bits = bits_of(choice.results[0].type)
        name = chosen_by(choice)
        if not bits or not name:
            continue
        _, one, other = choice.operands
        found = x86.EXTREMES[name, str(ir.VectorType(one.type).element_type), bits]
        if not found.is_of(target) or not any(map(is_constant, (one, other))):
            continue
        with ir.InsertionPoint(op), op.operation.location:
            made = instruction(found, one, other)
        choice.results[0].replace_all_uses_with(made)
        choice.erase()


def chosen_by(choice: ir.Operation) -> str:
    """What a choice is of what it compares: "max", "min", or "" for neither."""
    compared = choice.operands[0].owner
    if isinstance(compared, ir.Block) or compared.name != "arith.cmpf":
        return ""
    pairs = zip(list(compared.operands), list(choice.operands)[1:], strict=True)
    if not all(is_same(one, other) for one, other in pairs):
        return ""
    predicate = compared.attributes["predicate"].value  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
    return WORDS.get(predicate, "")


def is_same(one: ir.Value, other: ir.Value) -> bool:
    """Whether two values are one, or equal constants."""
    if one == other:
        return True
    if not is_constant(one) or not is_constant(other):
        return False
    return one.owner.attributes["value"] == other.owner.attributes["value"]  # type: ignore[union-attr] - constants have owners


def instruction(named: Instruction, one: ir.Value, other: ir.Value) -> ir.Value:
    operands = [one, other, *(word(ROUNDING) for _ in named.operands[2:])]
    return instructions.emit(named.function, one.type, operands)
