"""What a step of a register tile costs for sums of any semiring."""

from __future__ import annotations

from nanoloom.nest.reduction import KEEPS_NAN, NO_WORK
from nanoloom.nest.stage import Stage
from nanoloom.schedule.step_cost import StepCost
from nanoloom.target.facts import Target

SVE_OTHERS = 3  # numbers of rows that LLVM loads early


def step_cost(stage: Stage, target: Target) -> StepCost:
    """What a vector of results takes, by the operations of a point.

    What is not added at once needs a register until it is, and the next one another;
    what finds NaN needs one more.
    """
    work = [name for name in stage.body if name not in NO_WORK]
    floats = stage.writes[0].element in ("f32", "f64")
    if stage.is_contraction and floats and target.fuses:
        if target.isa.scalar_factors:
            # LLVM loads the next vector early.
            return StepCost(right_registers=2, others=0)
        if target.vector.scalable:
            # ld1rw reaches 63 numbers: a row has an address of its own each step.
            return StepCost(left_loads=2, others=SVE_OTHERS)
        return StepCost()
    three = not target.isa.keeps_nan
    keeping = [name for name in work if name in KEEPS_NAN and three]
    additions = max(0, len(work) - 1 + 2 * len(keeping))
    others = 3 + bool(keeping) + 2 * target.writes_over
    return StepCost(1, additions, others=others)
