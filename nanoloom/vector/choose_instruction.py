"""Which instruction takes several steps of a register tile's sum, and where.

As its operands lie: an instruction on matrices, a dot product, or one that multiplies
by a lane of a register.  What is left of a sum, fewer steps, is multiplied one by one;
of woven weights as a group that has zeros beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from nanoloom.ir.access import Access, add, index
from nanoloom.ir.linalg_query import Op, iterators
from nanoloom.ir.loop_nest import element
from nanoloom.ir.mlir import ir
from nanoloom.schedule.lane_factors import is_wide_room, wide_lane_factors
from nanoloom.target.facts import Target
from nanoloom.target.instructions.aarch64 import LANE_PRODUCT
from nanoloom.target.instructions.choose import DotUse, scalable_uses
from nanoloom.target.instructions.instruction import LANE
from nanoloom.vector.extents import rounded_down
from nanoloom.vector.grouped_rows import in_groups_of
from nanoloom.vector.instruction_steps import InstructionSteps
from nanoloom.vector.stationary.dot_products import adds_products, refuse_instruction
from nanoloom.vector.tile_points import Point, Step
from nanoloom.vector.value_cache import ValueCache
from nanoloom.vector.vector_plan import VectorPlan

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile


def required_steps(
    op: Op, plan: VectorPlan, strip: RegisterTile, target: Target
) -> InstructionSteps | None:
    """The steps of the instruction that a stage of scalable vectors along its columns
    is to have; None where none is said.

    Raises Error where it does not multiply what lies so.
    """
    if not plan.instruction or iterators(op)[plan.axis] == "reduction":
        return None
    found = steps_of(op, plan, strip, target)
    if found is None or found.name != plan.instruction:
        refuse_instruction(plan.instruction)
    return found


def steps_of(
    op: Op, plan: VectorPlan, strip: RegisterTile, target: Target
) -> InstructionSteps | None:
    """The steps that some instruction adds at once, None where nothing multiplies
    groups, or none of them lies together."""
    if not plan.lanes.scalable or iterators(op)[plan.axis] == "reduction":
        return None
    if not adds_products(op) or len(strip.inputs) != 2:
        return None
    kinds = [x.access(plan.axis) for x in strip.inputs]
    if Access.UNIFORM not in kinds:
        return None
    left = kinds.index(Access.UNIFORM)
    (*_, deepest), x = strip.reduced, strip.inputs[1 - left]
    if strip.inputs[left].access(deepest) is not Access.CONTIGUOUS:
        return None
    plain = kinds[1 - left] is Access.CONTIGUOUS
    unroll = strip.unrolled.get(deepest, 1)
    for use in scalable_uses(target, element(op, left), element(op, 1 - left)):
        dot = use.dot
        woven = in_groups_of(x, plan.axis, deepest, dot.steps)
        by_registers = plain and dot.rows == 1 and not unroll % dot.steps
        wide = dot.bits // LANE * (1 if woven else dot.steps)
        if (woven or by_registers) and not plan.lanes.count % wide:
            return InstructionSteps(use, left, 1 - left, deepest, woven)
    if not plain or not multiplies_lanes(op, plan, strip, target):
        return None
    use = DotUse(LANE_PRODUCT, swapped=True)
    return InstructionSteps(use, left, 1 - left, deepest, woven=False)


def multiplies_lanes(
    op: Op, plan: VectorPlan, strip: RegisterTile, target: Target
) -> bool:
    """Whether products of f32 are of whole registers, as many steps behind each other
    as a row's numbers are loaded at once, and all in registers."""
    group, (*_, deepest) = wide_lane_factors(target), strip.reduced
    if not group or {element(op, n) for n in range(3)} != {"f32"}:
        return False
    if plan.lanes.count != group or strip.unrolled.get(deepest, 1) % group:
        return False
    rows = prod(count for dim, count in strip.jam.items() if dim != strip.dim)
    return is_wide_room(rows, strip.jam.get(strip.dim, 1), target)


def summed(
    strip: RegisterTile,
    points: list[Point],
    start: list[ir.Value],
    step: Step,
    once: ValueCache,
) -> list[ir.Value]:
    """The results of some points together, from what they begin with."""
    steps = used_steps(strip)
    if steps is None:
        return strip.accumulate(strip.reduced, points, start, step, once)
    begun = steps.begun(strip, points, start)
    made = strip.accumulate(strip.reduced, points, begun, step, once)
    return steps.finished(strip, points, made)


def in_groups(
    strip: RegisterTile,
    part: tuple[list[int], ir.Value, int],
    points: list[Point],
    values: list[ir.Value],
    once: ValueCache,
) -> tuple[int, list[ir.Value]]:
    """As many whole groups as there are in so many steps: how many steps those are,
    and the sums with them.

    part: the dimensions of the sum from these on, where they begin, and their number.
    """
    steps, (dims, begin, count) = used_steps(strip), part
    if steps is None or len(dims) > 1:
        return 0, values
    whole = count // steps.group * steps.group
    for number in range(0, whole, steps.group):
        values = steps.step(strip, add(begin, index(number)), points, values, once)
    if not steps.woven:
        return whole, values
    for number in range(whole, count):
        at = add(begin, index(number))
        values = steps.step(strip, at, points, values, once, alone=True)
    return count, values


def cuts(
    strip: RegisterTile, dims: list[int], extent: ir.Value, count: int
) -> Iterator[tuple[ir.Value, ir.Value, int]]:
    """The parts of a dimension with as many steps behind each other: so many as a
    schedule says, then groups, then single ones."""
    steps, begin = used_steps(strip), index(0)
    group = steps.group if steps and len(dims) == 1 else 1
    for number in dict.fromkeys((count, group, 1)):
        end = rounded_down(extent, number)
        yield begin, end, number
        begin = end


def used_steps(strip: RegisterTile) -> InstructionSteps | None:
    """What adds several steps at once; nothing for single numbers."""
    steps = strip.steps
    if steps is None or not strip.lanes.scalable:
        return None
    lone = steps.use.dot.lanes and strip.jam.get(strip.dim, 1) == 1
    return None if lone else steps  # LLVM gives their registers to sums, and spills
