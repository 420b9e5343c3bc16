"""Maxima and minima that keep NaN: three instructions of AVX-512, where LLVM takes six.

r = vrange(a, b)                 the larger; of zeros the right one; of NaN the other
r = a + b where one is NaN       which is NaN
"""

from __future__ import annotations

from nanoloom.mlir import arith, ir, named
from nanoloom.target.facts import Target
from nanoloom.target.instructions import x86
from nanoloom.vector.nanokernel import instructions

LARGER, SMALLER = "arith.maximumf", "arith.minimumf"
# Intel's manual, VRANGEPS: which number, its sign as it is; and "rounding as set".
CHOICE = {LARGER: 0b0101, SMALLER: 0b0100}
AS_SET = 4


def use_range_instructions(module: ir.Module, target: Target) -> None:
    """Write the maxima and minima of whole vectors with the target's instruction."""
    if not target.has("avx512dq", "avx512vl"):
        return
    for op in named(module, *CHOICE):
        result = op.operation.results[0]
        if bits_of(result.type) and not any(map(is_constant, op.operation.operands)):
            with ir.InsertionPoint(op), op.operation.location:
                made = chosen(CHOICE[op.operation.name], *op.operation.operands)
            result.replace_all_uses_with(made)
            op.operation.erase()


def is_constant(value: ir.Value) -> bool:
    """Whether LLVM knows the number: it writes one instruction or two then."""
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.name == "arith.constant"


def bits_of(kind: ir.Type) -> int:
    """Of a vector that one instruction takes, 0 for what is none."""
    if not isinstance(kind, ir.VectorType) or kind.rank != 1 or any(kind.scalable_dims):
        return 0
    element = kind.element_type
    if not isinstance(element, ir.F32Type | ir.F64Type):
        return 0
    width = kind.shape[0] * element.width
    return width if width in x86.WIDTHS else 0


def chosen(choice: int, one: ir.Value, other: ir.Value) -> ir.Value:
    kind = ir.VectorType(one.type)
    named = x86.RANGES[str(kind.element_type), bits_of(kind)]
    all_lanes = ir.IntegerType.get_signless(max(kind.shape[0], 8))
    operands = [one, other, word(choice), one, arith.constant(all_lanes, -1)]
    operands += [word(AS_SET) for _ in named.operands[len(operands) :]]
    made = instructions.emit(named.function, kind, operands)
    lost = arith.cmpf(arith.CmpFPredicate.UNO, one, other)
    return arith.select(lost, arith.addf(one, other), made)


def word(number: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(32), number)
