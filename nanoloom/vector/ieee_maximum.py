"""Maxima that leave NaN out, where an instruction does: vfmax of RISC-V, Arm's fmaxnm.

select(x > sofar, x, sofar)   ->   maxnumf(x, sofar)     for a `sofar` that is never NaN

A comparison and a choice are one instruction on x86 alone.
"""

from __future__ import annotations

import math

from nanoloom.mlir import arith, ir, named
from nanoloom.target.facts import Target
from nanoloom.vector.min_max_instructions import chosen_by


def use_ieee_maximum(module: ir.Module, target: Target) -> None:
    """Write the running maxima of floats with the target's instruction."""
    if not target.isa.leaves_nan or target.is_scalar:
        return
    for op in named(module, "arith.select"):
        choice = op.operation
        if is_larger(choice) and is_number(choice.operands[2], frozenset()):
            with ir.InsertionPoint(op), op.operation.location:
                made = arith.maxnumf(choice.operands[1], choice.operands[2])
            choice.results[0].replace_all_uses_with(made)
            choice.erase()


def is_larger(op: ir.Operation) -> bool:
    """Whether an operation is select(x > y, x, y)."""
    return chosen_by(op) == "max"


def is_number(value: ir.Value, assumed: frozenset[ir.Value]) -> bool:
    """Whether a value is never NaN, as none of these is."""
    if value in assumed:
        return True
    owner = value.owner
    if isinstance(owner, ir.Block):
        loop = owner.owner
        if loop.operation.name != "scf.for" or owner.arguments[0] == value:
            return False
        place = list(owner.arguments).index(value) - 1
        return carries_numbers(loop.operation, place, assumed | {value})
    match owner.name:
        case "arith.constant":
            return not is_nan(owner.attributes["value"])
        case "vector.broadcast":
            return is_number(owner.operands[0], assumed)
        case "arith.maxnumf":
            return any(is_number(x, assumed) for x in owner.operands)
        case "arith.select":  # what is above another number is none
            others = list(owner.operands)[2 if is_larger(owner) else 1 :]
            return all(is_number(x, assumed) for x in others)
        case "scf.for":
            place = list(owner.results).index(value)
            inside = owner.regions[0].blocks[0].arguments[place + 1]
            return carries_numbers(owner, place, assumed | {inside})
        case _:
            return False


def carries_numbers(
    loop: ir.Operation, place: int, assumed: frozenset[ir.Value]
) -> bool:
    """Whether what a loop carries begins as a number and stays one."""
    bounds = 3
    last = list(loop.regions[0].blocks[0].operations)[-1].operation
    carried = loop.operands[bounds + place], last.operands[place]
    return all(is_number(x, assumed) for x in carried)


def is_nan(number: ir.Attribute) -> bool:
    """Whether a constant is NaN in all its lanes, or not known to be none."""
    if isinstance(number, ir.DenseElementsAttr) and number.is_splat:
        number = number.get_splat_value()
    return not isinstance(number, ir.FloatAttr) or math.isnan(number.value)
