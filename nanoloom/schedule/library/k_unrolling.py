"""Steps of a register tile's sum: how many are a round, and whether loads are ahead."""

from __future__ import annotations

from math import prod

from nanoloom.schedule.lane_factors import is_wide_room, wide_lane_factors
from nanoloom.schedule.language import Directive, Pipeline, Unroll
from nanoloom.schedule.library.product_form import Form
from nanoloom.target.facts import Target

STEPS = 2  # of the innermost sum, behind each other
# Multiply-adds in a round of the innermost loop, about: what the loop itself costs, an
# addition, a branch and a prefetch, takes their issue slots.
ROUND = 96


def steps_of_round(rows: int, vectors: int, target: Target, *, streams: bool) -> int:
    """Steps of a tile's sum that are a round of its innermost loop, a power of two.

    A quarter of them where more rows than vectors share what is loaded: it is as fast,
    and less code to compile.  Fewer rows wait for their loads, a core that runs in
    order for its sums.
    streams: panels are read once or twice, and each round asks for the next (Prefetch).
    """
    points = rows * vectors
    if rows <= vectors or streams or target.vector.in_order:
        return 8 if 8 * points <= ROUND else 4
    return min(8, 1 << max(1, ROUND // 4 // points).bit_length() - 1)


def unroll_k(
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
    ahead = target.vector.in_order and depth >= 4 * STEPS
    steps = Unroll(stage, axis, STEPS)
    return (steps, Pipeline(stage, axis)) if ahead else (steps,)


def factors_in_iteration(form: Form, tile: tuple[int, ...], target: Target) -> int:
    """Steps of the innermost sum whose factors are loaded at once (lane_factors.py), 1
    where each is for itself, or the tile leaves no room for them.

    tile: vectors, behind the rows if there are several.
    """
    stage, (*rows, vectors) = form.stage, tile
    group, kinds = wide_lane_factors(target), [x.element for x in stage.reads]
    if not group or not stage.is_contraction or kinds != ["f32", "f32"]:
        return 1
    (left,) = (x for n, x in enumerate(stage.reads) if n not in form.right)
    (*outer, last), axis = left.indices, form.reduced[-1]
    along = last.factor(axis) == 1 and all(axis not in x.axes for x in outer)
    fits = is_wide_room(prod(rows), vectors, target) and form.extent(axis) >= group
    return group if fits and along else 1
