"""What a step of a register tile costs for sums of any semiring."""

from __future__ import annotations

from nanoloom.nest.reduction import KEEPS_NAN, NO_WORK
from nanoloom.nest.statement import Statement
from nanoloom.schedule.families import BYTES
from nanoloom.schedule.library import k_groups
from nanoloom.schedule.step_cost import StepCost
from nanoloom.target.facts import Target


def step_cost(stage: Statement, target: Target, woven: int = 0) -> StepCost:
    """What a vector of results takes, by the operations of a point.

    What is not added at once needs a register until it is, and the next one another;
    what finds NaN needs one more.  woven: so many steps of a weight lie together.
    """
    work = [name for name in stage.body if name not in NO_WORK]
    floats = stage.writes[0].element in ("f32", "f64")
    if (grouped := k_groups.step_cost(stage, target, woven)) is not None:
        return grouped
    if stage.is_contraction and is_fused(stage, target):
        if target.isa.scalar_factors and not floats:
            # Of a group of four, two of bytes and two of 16 bits.
            return StepCost(others=0)
        if target.isa.scalar_factors:
            # LLVM loads the next vector early.
            return StepCost(right_registers=2, others=0)
        if target.vector.scalable:
            # ld1rw reaches 63 numbers: a row has an address of its own each step.  LLVM
            # loads three rows' numbers early.
            return StepCost(left_loads=2, others=3)
        return StepCost()
    three = not target.isa.keeps_nan
    keeping = [name for name in work if name in KEEPS_NAN and three]
    additions = max(0, len(work) - 1 + 2 * len(keeping))
    others = 3 + bool(keeping) + 2 * target.writes_over
    return StepCost(1, additions, others=others)


def is_fused(stage: Statement, target: Target) -> bool:
    """Whether an instruction multiplies and adds: floats, and bytes where vectors are
    as wide as the machine's (vwmacc of RVV, mla of SVE)."""
    if stage.writes[0].element in ("f32", "f64"):
        return target.fuses
    kinds = tuple(x.element for x in (*stage.reads, *stage.writes))
    return kinds in BYTES and target.vector.any_length
