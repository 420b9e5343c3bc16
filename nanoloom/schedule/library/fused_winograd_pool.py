"""Products whose tiles are pooled in the cache (nest/winograd_pool.py).

for tile, panel of columns (a task):
    t = product by register tiles, with what follows at the same places
    p = max of windows of t
"""

from __future__ import annotations

from nanoloom.nest.contraction import bits
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.winograd_pool import Pooled
from nanoloom.schedule.language import ALL, Parallel, Schedule, Tile, Unroll
from nanoloom.schedule.library.candidates import schedule_of
from nanoloom.schedule.library.fused_product_chain import epilogue, plans_of
from nanoloom.schedule.library.fused_product_chain import sizes as sizes_of
from nanoloom.schedule.library.vectors import vectors
from nanoloom.target.facts import Target


def fused_winograd_pool(nest: LoopNest, found: Pooled, target: Target) -> Schedule:
    """A task for each tile and panel of columns."""
    pool, shape = found.pool, found.shape
    most = max(shape.extents[d] for d in shape.rows)
    plan, _ = plans_of(nest, shape, found.product, most, target)[0]
    assert plan is not None, "its right operand is contiguous"
    width = bits(found.product.writes[0].element)
    columns = plan.vectors * (target.vector.bits // width)
    windows = {
        name
        for index in pool.reads[0].indices
        if len(index.terms) > 1
        for name in index.axes
    }
    last = pool.writes[0].plain[-1]
    sizes = tuple(
        0 if a.is_reduction or a.name in windows else columns if a.name == last else 1
        for a in pool.axes
    )
    tile = dict.fromkeys(shape.shared, 1) | dict.fromkeys(shape.rows, plan.rows)
    behind = epilogue(nest, found.product, found.end)
    rest = [s for s in nest.stages if s != found.product]
    taps = (a.name for a in pool.axes if a.is_reduction)
    words = (
        Parallel(pool.name, sizes, ALL),
        Tile(
            found.end.name,
            sizes_of(shape, found.product, found.end, tile),
            tuple(stage.name for stage in reversed(behind[:-1])),
        ),
        plan,
        *vectors(rest, target),
        *(Unroll(pool.name, tap) for tap in taps),
    )
    reason = f"tiles of {plan.rows} x {plan.vectors} vectors, pooled in the cache"
    return schedule_of(nest, target, (words, reason))
