"""Whether a fusion takes less time than the kernels that it joins.

What it computes again takes arithmetic; what it keeps in the cache spares lines on
their way out of the cache and back.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.cost.estimate import estimate
from nanoloom.nest.contraction import bits
from nanoloom.nest.nest import LoopNest
from nanoloom.target.facts import Target


@dataclass(frozen=True)
class Profit:
    """spared: bytes that no longer come into the second-level cache or leave it.
    again: points that are computed more than once, or for nothing.  cycles: that all of
    it takes less.
    """

    spared: int
    again: int
    cycles: float


def profit(apart: LoopNest, fused: LoopNest, target: Target, idle: int = 0) -> Profit:
    """Of stages in the tasks of the last one, beside those of kernels of their own.

    idle: points that are computed beside those, for nothing.
    """
    joined = estimate(fused, (), target)
    lanes = target.lanes(bits("f32")) * target.vector.fma_per_cycle
    spared = estimate(apart, (), target).moved("l2") - joined.moved("l2")
    taken = target.caches.l3_cycles * spared / target.caches.line
    again = joined.recomputed + idle
    return Profit(spared, again, taken - again / lanes)
