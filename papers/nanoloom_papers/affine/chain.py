"""From a carried value to what is carried on: the steps in between are one kind."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nanoloom.ir.mlir import ir
from nanoloom_papers.affine.carrier import FOR, Carrier, carried, initial_values
from nanoloom_papers.affine.choice import KEEPS_A_NAN
from nanoloom_papers.affine.step import ABSOLUTE, Step, step_of

MAXIMA = ("arith.maximumf", "arith.maxnumf", "arith.maxsi")
PASSES_ABSOLUTE = "the carried value passes through an absolute value"


@dataclass(frozen=True)
class Chain:
    """All that happens to a carried value in a step, in order.  kind: of all steps."""

    kind: str
    steps: tuple[Step, ...]

    @property
    def obstacles(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(s.obstacle for s in self.steps if s.obstacle))


def follow(carrier: Carrier) -> Chain | None:
    """The steps from a carrier's start to its end; None if they are no reduction.

    Nothing else may see the value on its way.
    """
    block = carrier.end.block
    value, steps = carrier.start, list[Step]()
    while not is_taken(value, carrier):
        if any(use.owner.operation.block != block for use in value.uses):
            return None
        step = through_loop(value) or step_of(value)
        if step is None or any(op.block != block for op in step.companions):
            return None
        steps.append(step)
        value = step.result
    kinds = {step.kind for step in steps} - {""}
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if any(not step.kind for step in steps) and not is_absolute(steps, kind):
        return None
    return Chain(kind, tuple(without_nan(step, carrier) for step in steps))


def is_taken(value: ir.Value, carrier: Carrier) -> bool:
    """Whether a value's only use is the carrier's end."""
    uses = list(value.uses)
    return len(uses) == 1 and (uses[0].owner.operation, uses[0].operand_number) == (
        carrier.end,
        carrier.place,
    )


def through_loop(value: ir.Value) -> Step | None:
    """A loop further in that carries the value on and is a reduction of it itself."""
    uses = list(value.uses)
    if len(uses) != 1 or uses[0].owner.operation.name != FOR:
        return None
    loop = uses[0].owner.operation
    position = uses[0].operand_number - (
        len(list(loop.operands)) - len(initial_values(loop))
    )
    if position < 0:
        return None
    inner = follow(carried(loop)[position])
    if inner is None or any(step.companions for step in inner.steps):
        return None
    return Step(
        inner.kind,
        loop.results[position],
        tuple(name for step in inner.steps for name in step.operations),
        tuple(value for step in inner.steps for value in step.inputs),
        tuple(name for step in inner.steps for name in step.decomposition),
        inner.obstacles[0] if inner.obstacles else "",
        is_square=all(step.is_square for step in inner.steps),
    )


def is_absolute(steps: list[Step], kind: str) -> bool:
    """Whether absolute values on the way change nothing but the first of them.

    A maximum with an absolute value before it is not negative at the next step.
    """
    first, *others = steps
    once = first.operations[0] in ABSOLUTE and all(step.kind for step in others)
    return once and kind in MAXIMA


def without_nan(step: Step, carrier: Carrier) -> Step:
    """The step as it is where the carrier begins with a number; absolute ones kept."""
    told = step.obstacle
    if not step.kind:
        told = PASSES_ABSOLUTE
    if told == KEEPS_A_NAN and begins_with_number(carrier):
        told = ""
    return replace(step, obstacle=told)


def begins_with_number(carrier: Carrier) -> bool:
    """Whether a carried value is known to begin as something other than NaN."""
    if carrier.initial is None or isinstance(carrier.initial.owner, ir.Block):
        return False
    made = carrier.initial.owner.operation
    if made.name != "arith.constant":
        return False
    value = made.attributes["value"]
    return isinstance(value, ir.FloatAttr) and value.value == value.value  # NaN is not
