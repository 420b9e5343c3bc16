"""Sums of which an instruction adds several steps at once, in scalable vectors.

    sums[c] += a[k] * b[k, c] + ... + a[k + 3] * b[k + 3, c]

SVE has such for bytes.  Rows of b are whole registers, four numbers of a column are in
a lane once they are woven: as many registers of sums are one vector.
"""

from __future__ import annotations

from nanoloom.nest.contraction import Contraction, left_lies_along, roles
from nanoloom.nest.stage import Stage
from nanoloom.schedule.families import BYTES
from nanoloom.schedule.step_cost import StepCost
from nanoloom.target.dots import GROUP, DotUse, scalable_dot
from nanoloom.target.facts import Target

# Of four rows of four registers, eight are woven together: two for each.
WOVEN = 2


def together(stage: Stage, target: Target) -> int:
    """Steps of the innermost sum that are one, 1 where each is for itself."""
    use = use_of(stage, target)
    return 1 if use is None else GROUP[use.dot.right]


def step_cost(stage: Stage, target: Target) -> StepCost | None:
    """What such a group of steps costs.

    Of inverted signs an exclusive or for each row, and sums of b beside the others.
    """
    use = use_of(stage, target)
    if use is None:
        return None
    flips = int(use.flipped)
    return StepCost(left=flips, right=WOVEN, right_registers=2 + flips, others=3)


def use_of(stage: Stage, target: Target) -> DotUse | None:
    """The instruction, if groups of the left operand's numbers lie together."""
    shape = shape_of(stage)
    if shape is None or not left_lies_along(stage, shape):
        return None
    left, right = (stage.reads[n].element for n in (shape.left, shape.right))
    use = scalable_dot(target, left, right)
    if use is None or shape.extents[shape.reduced[-1]] < GROUP[use.dot.right]:
        return None
    return use


def shape_of(stage: Stage) -> Contraction | None:
    """The roles of a product of bytes with rows of its right operand as they lie."""
    kinds = tuple(x.element for x in (*stage.reads, *stage.writes))
    if not stage.is_contraction or kinds not in BYTES:
        return None
    shape = roles(stage)
    return shape if shape is not None and shape.contiguous else None
