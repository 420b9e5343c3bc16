"""Vectors of a part of a register, for products of few columns.

    8 columns, registers of 16 numbers:  half of each is computed for nothing
    24 columns:                          a quarter of two
    1000 columns:                        as many, but the last panel of 7 has no mask

Grouped convolutions have such products, one for each group.  A panel is as wide as the
columns then, nothing is masked, and a core that takes two turns for a whole register
takes one for a half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from nanoloom.schedule.register_tile import RegisterTile
from nanoloom.target.facts import LANE_BITS, Target, VectorUnit

Ranked = Callable[[VectorUnit], list[RegisterTile]]


def best_width(
    ranked: Ranked, columns: int, bits: int, target: Target
) -> tuple[list[RegisterTile], Target]:
    """The tiles of the width that takes the fewest cycles, and the target with it.

    ranked: the tiles of a unit, the cheapest first, by cycles relative to its limit.
    The widest of those that are alike; only that where whole registers fit.
    """
    found = [
        (scaled(ranked, one, target), one) for one in targets(columns, bits, target)
    ]
    return min(found, key=lambda tiles_and_target: tiles_and_target[0][0].cost)


def scaled(ranked: Ranked, narrowed: Target, target: Target) -> list[RegisterTile]:
    """Tiles by cycles relative to the limit of whole registers."""
    unit, whole = narrowed.vector, target.vector
    limit = whole.bits * whole.fma_per_cycle / (unit.bits * unit.fma_per_cycle)
    return [replace(tile, cost=tile.cost * limit) for tile in ranked(unit)]


def targets(columns: int, bits: int, target: Target) -> Sequence[Target]:
    """The target, and what it is with vectors of half a register, or a quarter."""
    unit = target.vector
    lanes = unit.bits // bits
    if unit.scalable or columns % lanes == 0:
        return (target,)
    parts = (n for n in (2, 4) if unit.bits // n >= LANE_BITS)
    return (target, *(replace(target, vector=unit.narrowed(n)) for n in parts))
