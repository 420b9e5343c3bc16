"""Whether a fusion takes less time than the kernels that it joins.

What it computes again takes arithmetic; what it keeps in the cache spares lines on
their way out of the cache and back.
"""

from __future__ import annotations

from nanoloom.cost.estimate import estimate
from nanoloom.nest.contraction import bits
from nanoloom.nest.nest import LoopNest
from nanoloom.target.facts import Target


def pays(apart: LoopNest, fused: LoopNest, target: Target) -> bool:
    """Whether stages in the tasks of the last one are faster than one by one.

    Where nothing is computed again they are, if no more bytes come into the cache: each
    pass over a tensor that there is less spares instructions at least.
    """
    joined = estimate(fused, (), target)
    lanes = target.lanes(bits("f32")) * target.vector.fma_per_cycle
    spared = estimate(apart, (), target).moved("l2") - joined.moved("l2")
    if not joined.recomputed:
        return spared >= 0
    return (
        joined.recomputed / lanes
        < target.caches.l3_cycles * spared / target.caches.line
    )
