"""How one operation combines a carried value with another: its kind, if it has one."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.ir.mlir import ir
from nanoloom.nest.reduction import KINDS
from nanoloom_papers.affine.choice import Choice, choice_of, flags_of

FMA = ("math.fma", "vector.fma")
ABSOLUTE = ("math.absf", "math.absi")
ADDEND = 2  # of an fma's operands
# What an operation is made of, where the carried value is its left operand.
FROM_THE_LEFT = {
    "arith.subf": ("arith.addf", ("negf", "addf")),
    "arith.subi": ("arith.addi", ("subi", "addi")),
    "arith.divf": ("arith.mulf", ("divf", "mulf")),
}


@dataclass(frozen=True)
class Step:
    """One operation that a carried value goes through.

    kind: a key of KINDS; "" for an operation that only prepares the next one.
    result: what is carried on.  operations: as they stand there.  decomposition: the
    simpler ones that they are, the last of them the kind; empty for the kind itself.
    inputs: what is combined with the carried value.  obstacle: why the order of steps
    must stay, "" if it may change.  companions: selects of the same condition; side:
    their operand that is taken with the input.
    """

    kind: str
    result: ir.Value
    operations: tuple[str, ...]
    inputs: tuple[ir.Value, ...] = ()
    decomposition: tuple[str, ...] = ()
    obstacle: str = ""
    companions: tuple[ir.Operation, ...] = ()
    side: int = 0
    is_square: bool = False


def step_of(value: ir.Value) -> Step | None:
    """What the only users of a carried value make of it; None for no reduction."""
    uses = list(value.uses)
    if len(uses) == 1:
        return single(value, uses[0].owner.operation, uses[0].operand_number)
    found = choice_of(value)
    return None if found is None else chosen(found)


def single(value: ir.Value, user: ir.Operation, position: int) -> Step | None:
    """The step of a value with one use."""
    name, operands = user.name, list(user.operands)
    if len(list(user.results)) != 1:
        return None
    others = tuple(other for other in operands if other != value)
    if name in KINDS:
        return Step(name, user.results[0], (name,), others)
    if name in FROM_THE_LEFT and position == 0:
        kind, parts = FROM_THE_LEFT[name]
        told = ""
        if name == "arith.divf" and "arcp" not in flags_of(user):
            told = "a division is no product with a rounded reciprocal"
        return Step(kind, user.results[0], (name,), others, parts, told)
    if name in FMA and position == ADDEND:
        square = operands[0] == operands[1]
        parts = ("mulf", "addf")
        kind = "arith.addf"
        return Step(kind, user.results[0], (name,), others, parts, is_square=square)
    if name in ABSOLUTE:
        return Step("", user.results[0], (name,))
    return None


def chosen(found: Choice) -> Step:
    """The step of a comparison and what it selects."""
    kind = atomic(found.kind)
    return Step(
        found.kind,
        found.result,
        found.operations,
        (found.other,),
        () if found.operations == (found.kind,) else (kind,),
        found.obstacle,
        found.companions,
        found.side,
    )


def atomic(operation: str) -> str:
    """A kind's name as MLIR's AtomicRMWKind: arith.maxsi is maxs, arith.ori is ori."""
    name = operation.removeprefix("arith.")
    is_extreme = name.startswith(("max", "min"))
    return name.removesuffix("i") if is_extreme else name
