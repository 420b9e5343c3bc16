"""The plan of a stage's vector code: what a script has noted of it, as a value."""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.ir.linalg_query import Op
from nanoloom.nest.extent import Lanes
from nanoloom.target.tail_forms import FORMS, MASKED_REMAINDER
from nanoloom.vector.vectorize import (
    AHEAD,
    INSTRUCTION,
    JAM,
    JOINT,
    ORDER,
    POINTS,
    RESIDENT,
    REUSE,
    STATIONARY,
    SUMS,
    TRANSPOSE,
    UNROLL,
    VECTOR,
    Pairs,
    noted,
    pairs_of,
)


@dataclass(frozen=True)
class ResidentOperands:
    """What stays in registers (directives/stationary.py), with loops by their
    numbers.
    """

    anchor: int
    points: tuple[int, ...]
    sums: tuple[int, ...]
    resident: Pairs
    unroll: int


@dataclass(frozen=True)
class VectorPlan:
    """axis: the loop that vectors run along.  chains: of a reduction's sums.

    unrolled: loops of a sum, and how many of their steps stand behind each other, 0
    for all.  jam: loops, and how many of their points are computed at once; of `axis`
    so many vectors.  order: of the loops, outermost first, () for the usual one.
    ahead: loops whose next round is loaded while one computes.
    form: of the loop over vectors (target/tail_forms.py).
    squares: what lies across is turned; bits of a block_bits of its rows, and lanes of
    the squares that full vectors leave.  stays: what the order of all points follows.
    joint: sums along vectors that are reduced together; reuses: steps come in the order
    of the places that they read.  instruction: of several steps of a sum at once.
    """

    axis: int
    lanes: Lanes
    chains: int
    unrolled: Pairs = ()
    jam: Pairs = ()
    order: tuple[int, ...] = ()
    ahead: tuple[int, ...] = ()
    squares: tuple[int, int] | None = None
    stays: ResidentOperands | None = None
    form: str = MASKED_REMAINDER
    joint: int = 1
    reuses: bool = False
    instruction: str = ""


def plan_of(op: Op) -> VectorPlan | None:
    """The plan of a stage, None for plain loops."""
    words = noted(op, VECTOR)
    if not words:
        return None
    axis, count, chains, scalable, form = words
    lanes = Lanes(count, bool(scalable))
    unrolled, jam = pairs_of(op, UNROLL), pairs_of(op, JAM)
    order, ahead = noted(op, ORDER), noted(op, AHEAD)
    squares = (
        (noted(op, TRANSPOSE)[0], noted(op, TRANSPOSE)[1])
        if noted(op, TRANSPOSE)
        else None
    )
    stays = resident_operands_of(op)
    return VectorPlan(
        axis,
        lanes,
        chains,
        unrolled,
        jam,
        order,
        ahead,
        squares,
        stays,
        FORMS[form],
        *(noted(op, JOINT) or (1,)),
        reuses=REUSE in op.operation.attributes,
        instruction=instruction_noted(op),
    )


def resident_operands_of(op: Op) -> ResidentOperands | None:
    """What is noted of what stays in registers."""
    if not noted(op, STATIONARY):
        return None
    anchor, unroll = noted(op, STATIONARY)
    points, sums, resident = noted(op, POINTS), noted(op, SUMS), pairs_of(op, RESIDENT)
    return ResidentOperands(anchor, points, sums, resident, unroll)


def order_of(plan: VectorPlan, rank: int) -> tuple[int, ...]:
    """The loops, outermost first: without a word, blocks of points inside of others,
    vectors innermost."""
    if plan.order:
        return plan.order
    jammed = [axis for axis, _ in plan.jam if axis != plan.axis]
    others = [d for d in range(rank) if d != plan.axis and d not in jammed]
    return (*others, *jammed, plan.axis)


def instruction_noted(op: Op) -> str:
    """Its name, "" for none."""
    attributes = op.operation.attributes
    if INSTRUCTION not in attributes:
        return ""
    return attributes[INSTRUCTION].value  # type: ignore[attr-defined] - a string
