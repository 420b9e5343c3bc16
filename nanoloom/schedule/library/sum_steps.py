"""Steps of a register tile's sum: how many are a round, and whether loads are ahead."""

from __future__ import annotations

from nanoloom.schedule.language import Directive, Pipeline, Unroll
from nanoloom.target.facts import Target

STEPS = 2  # of the innermost sum, behind each other
ROUNDS = 4  # at least, if those are to load for each other


def words_of_steps(
    stage: str, axis: str, depth: int, target: Target, group: int = 1
) -> tuple[Directive, ...]:
    """What a schedule says of the innermost axis of a sum, of so many steps.

    A core that runs in order would wait for a step's numbers: they are loaded a round
    ahead, each in place of one that has been used.  With two steps a round these are
    other registers than those that are multiplied, and no more than without.
    group: so many steps are one instruction.
    """
    if group > 1:
        return (Unroll(stage, axis, group),)
    if depth < 2 * STEPS:
        return ()
    ahead = target.vector.in_order and depth >= ROUNDS * STEPS
    steps = Unroll(stage, axis, STEPS)
    return (steps, Pipeline(stage, axis)) if ahead else (steps,)
