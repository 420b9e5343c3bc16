"""An absolute value in its forms: an operation of its own, or chosen from x and -x.

%n = arith.negf %x : f32
%c = arith.cmpf ogt, %x, %zero : f32        or %x with %n, or the other way round
%a = arith.select %c, %x, %n : f32          or arith.maximumf %x, %n
"""

from __future__ import annotations

from nanoloom.ir.mlir import ir
from nanoloom_papers.affine.choice import GREATER, INTEGERS, LESS, picks, predicate
from nanoloom_papers.affine.location import maker_of
from nanoloom_papers.affine.step import ABSOLUTE

MAXIMA = ("arith.maximumf", "arith.maxnumf", "arith.maxsi")
COMPARISONS = ("arith.cmpf", "arith.cmpi")
DIFFERENCES = ("arith.subf", "arith.subi")


def is_absolute_value(op: ir.Operation) -> bool:
    """Whether what an operation makes is the absolute value of something."""
    if op.name in ABSOLUTE:
        return True
    if op.name in MAXIMA:
        return are_negatives(*op.operands)
    if op.name != "arith.select":
        return False
    condition, taken, left = op.operands
    comparison = maker_of(condition)
    if comparison is None or comparison.name not in COMPARISONS:
        return False
    return are_negatives(taken, left) and is_greater(comparison, taken, left)


def is_greater(comparison: ir.Operation, taken: ir.Value, left: ir.Value) -> bool:
    """Whether of two numbers, one the negative of the other, the greater is taken.

    A comparison of either with the other or with zero decides.
    """
    one, other = comparison.operands
    reference = other if one in (taken, left) else one
    compared = one if reference == other else other
    if compared not in (taken, left):
        return False
    if reference not in (taken, left) and not is_zero(reference):
        return False
    order = picks(comparison, reference, when=True) & {GREATER, LESS}
    wanted = GREATER if compared == taken else LESS
    return order == {wanted} and not is_unsigned(comparison)


def are_negatives(one: ir.Value, other: ir.Value) -> bool:
    return other in negated(one) or one in negated(other)


def negated(value: ir.Value) -> tuple[ir.Value, ...]:
    """What a value is the negative of."""
    op = maker_of(value)
    if op is not None and op.name == "arith.negf":
        return (op.operands[0],)
    if op is not None and op.name in DIFFERENCES and is_zero(op.operands[0]):
        return (op.operands[1],)
    return ()


def is_zero(value: ir.Value) -> bool:
    op = maker_of(value)
    if op is None or op.name != "arith.constant":
        return False
    number = op.attributes["value"]
    return isinstance(number, ir.FloatAttr | ir.IntegerAttr) and not number.value


def is_unsigned(comparison: ir.Operation) -> bool:
    integers = comparison.name == "arith.cmpi"
    return integers and INTEGERS[predicate(comparison)][1] == "u"
