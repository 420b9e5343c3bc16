"""All stages of a nest computed in the tasks of its last one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nanoloom.nest.footprint import Sizes
from nanoloom.nest.fusion import placed_at
from nanoloom.nest.loop import halves, plain
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.nest.steps import number


def in_tasks(
    nest: LoopNest,
    last: Statement,
    sizes: Sizes,
    inside: Sequence[Statement] | None = None,
) -> LoopNest:
    """for i: f[i] = ..;  for i: g(f[..])  ->  for block of i: { f of what g reads; g }

    sizes: of a block, along axes of the last stage; the others are whole.  inside: the
    stages that are computed there; None for all that the last one waits for.
    """
    placement = plain(last)
    outer, inner = [], []
    for loop in placement.loops:
        size = sizes.get(loop.axis)
        if not isinstance(size, int) or size >= number(loop.trips):
            inner.append(loop)
            continue
        blocks, within = halves(loop, size, f"{loop.name}o", loop.name)
        outer.append(blocks)
        inner.append(within)
    if not outer:
        return nest
    nest = nest.moved(replace(placement, loops=(*outer, *inner)))
    for stage in reversed(nest.upstream(last.name)):
        if inside is not None and stage not in inside:
            continue
        nest = placed_at(nest, stage.name, last.name, outer[-1].name)
    return nest
