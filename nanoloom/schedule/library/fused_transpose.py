"""Products whose result is turned in the cache (nest/transposed_result.py).

for block of rows, panel of columns (a task):
    t = product by register tiles, with what follows at the same places
    y = t in another order, by squares in registers
"""

from __future__ import annotations

from dataclasses import replace

from nanoloom.nest.contraction import roles
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.transposed_result import TransposedResult
from nanoloom.schedule.language import (
    ALL,
    Directives,
    Nanokernel,
    Parallel,
    Prefetch,
    Schedule,
    StoreAt,
)
from nanoloom.schedule.library.contraction import contraction
from nanoloom.schedule.library.panels import prefetches, row_names
from nanoloom.schedule.library.vectors import vectors
from nanoloom.schedule.packing import Pack
from nanoloom.target.facts import Target


def fused_transpose(
    nest: LoopNest, found: TransposedResult, target: Target
) -> Schedule | None:
    """The schedule of the product, with its tasks around what turns their results."""
    inside = contraction(found.inside, found.product, found.end, target)
    if inside is None:
        return None
    made = inside.each(lambda words: around_transpose(words, nest, found, target))
    return replace(made, reason=f"{inside.reason}; turned in the cache")


def around_transpose(
    words: Directives, nest: LoopNest, found: TransposedResult, target: Target
) -> Directives:
    """The words of a product, whose tasks are blocks of what is turned."""
    tasks = next(word for word in words if isinstance(word, Parallel))
    stage = found.inside.stage(tasks.stage)
    sizes = dict(zip(stage.names, tasks.sizes, strict=False))
    outer = replace(
        tasks, stage=found.turn.name, sizes=found.sizes(sizes), fuse=ALL, slowest=None
    )
    turned = tuple(
        outer if word == tasks else word
        for word in words
        if not (isinstance(word, Prefetch) and word.loops)
    )
    packings = tuple(word for word in turned if isinstance(word, Pack))
    loops = tuple(word for word in turned if not isinstance(word, Pack))
    shape = roles(found.product)
    assert shape is not None, "it is the product of a nest that is turned"
    named = row_names(found.product, shape)
    lies = isinstance(loops[0], StoreAt)  # an image without its border
    fetched = () if lies else prefetches(nest, packings, loops, named, target)
    at = next(n for n, word in enumerate(turned) if isinstance(word, Nanokernel)) + 1
    return (*turned[:at], *fetched, *turned[at:], *vectors((found.turn,), target))
