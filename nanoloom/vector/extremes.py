"""The larger or smaller of two floats by a target's own instruction.

    select(x > y, x, y)   y where one is NaN, and of zeros
    maximumf(x, y)        NaN where one is; -0.0 is below 0.0

The table of instructions says which number each gives there (Extreme), and where LLVM
does not find it.  One that is right takes an operation's place.  One that gives the
other number of a NaN is right for the first where y is never NaN; for the second with
two instructions more, where LLVM takes six:

    maximumf(x, y)   ->   select(x or y is NaN, x + y, instruction(x, y))

Of all lanes of a vector it is taken by halves, so that these instructions do it: LLVM
goes on lane by lane from four.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nanoloom.ir.mlir import arith, ir, named
from nanoloom.target.facts import Target
from nanoloom.target.instructions.choose import extremes_of
from nanoloom.target.instructions.instruction import KEPT, OTHER, SECOND, Extreme
from nanoloom.vector.combiner import Combiner, by_halves
from nanoloom.vector.nanokernel.instructions import emit_with
from nanoloom.vector.never_nan import chosen_by, is_constant, is_number, number_in
from nanoloom.vector.widths import is_scalable

KEEPING = {"arith.maximumf": "max", "arith.minimumf": "min"}


@dataclass(frozen=True)
class Wanted:
    """What an operation gives: the word and the NaN of an Extreme, of two numbers."""

    word: str
    nan: str
    one: ir.Value
    other: ir.Value


def use_extremes(module: ir.Module, target: Target) -> None:
    """Write the larger and the smaller number with the target's instructions."""
    known = extremes_of(target)
    if not target.isa.keeps_nan:
        take_halves(module)
    for op in named(module, "arith.select", *KEEPING):
        wanted = wanted_by(op.operation)
        if wanted is None or (wanted.nan == KEPT and target.isa.keeps_nan):
            continue
        found = next((x for x in known if gives(x, wanted)), None)
        if found is None or is_found_by_llvm(found, wanted):
            continue
        with ir.InsertionPoint(op), op.operation.location:
            made = extreme(found, wanted)
        op.operation.results[0].replace_all_uses_with(made)
        op.operation.erase()


def take_halves(module: ir.Module) -> None:
    """The largest or smallest of all lanes, of two halves at a time."""
    words = {f"#vector.kind<{name.split('.')[1]}>": name for name in KEEPING}
    for op in named(module, "vector.reduction"):
        name = words.get(str(op.attributes["kind"]))
        lanes, *before = op.operands
        if name is None or before or is_scalable(lanes.type):
            continue
        with ir.InsertionPoint(op), op.operation.location:
            made = by_halves(lanes, Combiner(name, op.operation.results[0].type))
        op.operation.results[0].replace_all_uses_with(made)
        op.operation.erase()


def wanted_by(op: ir.Operation) -> Wanted | None:
    """What an operation asks for, if that is a larger or smaller number."""
    if op.name in KEEPING:
        return Wanted(KEEPING[op.name], KEPT, *op.operands)
    word = chosen_by(op)
    return Wanted(word, SECOND, *list(op.operands)[1:]) if word else None


def gives(x: Extreme, wanted: Wanted) -> bool:
    """Whether an instruction gives what is wanted, with what is added to it."""
    if x.word != wanted.word or not takes(x, wanted.one.type):
        return False
    if x.nan == wanted.nan:
        return True
    if x.nan != OTHER:
        return False
    return wanted.nan == KEPT or (is_number(wanted.other) and not loses_zero(wanted))


def takes(x: Extreme, kind: ir.Type) -> bool:
    """Whether an instruction is for numbers or vectors of this type."""
    if x.operation:
        return True
    if not isinstance(kind, ir.VectorType) or kind.rank != 1 or any(kind.scalable_dims):
        return False
    return x.instruction.result == f"{kind.element_type}*{kind.shape[0]}"


def loses_zero(wanted: Wanted) -> bool:
    """Whether the second number is a constant zero that a zero of the other sign is
    above, or below."""
    if not is_constant(wanted.other):
        return False
    number = number_in(wanted.other.owner.attributes["value"])  # type: ignore[union-attr] - constants have owners
    lower = -1.0 if wanted.word == "max" else 1.0
    return number is None or (number == 0 and math.copysign(1, number) == lower)


def is_found_by_llvm(x: Extreme, wanted: Wanted) -> bool:
    """Whether LLVM does as well by itself."""
    beside = any(map(is_constant, (wanted.one, wanted.other)))
    return x.beside is not None and x.beside is not beside


def extreme(x: Extreme, wanted: Wanted) -> ir.Value:
    """The number, by the instruction."""
    one, other = wanted.one, wanted.other
    if x.operation:
        made = ir.Operation.create(x.operation, [one.type], [one, other]).results[0]
    else:
        made = emit_with(x.instruction, one.type, [one, other, one], x.words)
    if x.nan == wanted.nan or wanted.nan != KEPT:
        return made
    lost = arith.cmpf(arith.CmpFPredicate.UNO, one, other)
    return arith.select(lost, arith.addf(one, other), made)
