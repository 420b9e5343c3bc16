"""Bytes of a weight that are 16 bits wide in panels: for which products, at what cost.

Where rows share a panel, what each of them would widen again is wide before.  Where
additions have ports of their own, products of bytes are Winograd's inner products
(vector/nanokernel/inner_products.py), of rows that are copied in front of them.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from nanoloom.nest.contraction import FEW_ROWS, Contraction, bits
from nanoloom.schedule.families import INT8_INNER, INT8_PAIRS, Family
from nanoloom.schedule.step_cost import StepCost
from nanoloom.target.facts import LANE_BITS, Target

LEAST_STEPS = LANE_BITS // bits("u8")  # of a sum, whose rows and columns add little


def panel_bits(family: Family, shape: Contraction) -> int:
    """Of an integer in panels, 0 for as many as a weight has.

    Where rows share a panel, what each of them would widen again is wide before.
    """
    if family is INT8_INNER:
        return bits("s16")
    return bits("s16") if family is INT8_PAIRS and share_panel(shape) else 0


def share_panel(shape: Contraction) -> bool:
    """Whether a panel has many rows."""
    return prod(shape.extents[d] for d in shape.rows) >= 2 * FEW_ROWS


def suits_inner(shape: Contraction, target: Target) -> bool:
    """Whether what rows and columns add to sums is little beside their products.

    So is a part of a group, which is put together from single numbers; and a task has
    several panels, for which a tile's rows are copied once.
    """
    depth, together = shape.extents[shape.reduced[-1]], LEAST_STEPS
    deep = depth >= together and depth % (INT8_INNER.steps * INT8_INNER.group) == 0
    several = 2 * panel_bytes(shape, target) <= target.caches.l2
    return (deep or depth >= 2 * together) and several and share_panel(shape)


def wide_cost(cost: StepCost, shape: Contraction, target: Target) -> StepCost:
    """Of a step that reads wide panels: nothing is widened, but more comes.

    From the second-level cache, if a panel is more than half of the first one: tiles of
    few rows wait for it.
    """
    large = 2 * panel_bytes(shape, target) > target.caches.l1d
    loads = target.caches.l2_loads if large else 1
    return replace(cost, right=0, right_loads=loads)


def panel_bytes(shape: Contraction, target: Target) -> int:
    """Of a wide panel, about."""
    depth = prod(shape.extents[d] for d in shape.reduced)
    columns = target.caches.line * 8 // bits("f32")
    return depth * columns * bits("s16") // 8
