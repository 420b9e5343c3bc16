"""Products whose image is pooled in the cache, windows overlapping
(nest/overlapping_pool.py).

for block of the pool's rows, panel of columns (a task):
    t = product by register tiles, of the rows of the image that the block reads
    p = max of windows of t

Inside of a task both are made as they are in kernels of their own.
"""

from __future__ import annotations

from dataclasses import replace

from nanoloom.nest.nest import LoopNest
from nanoloom.nest.overlapping_pool import OverlappingPool, row_window_of, rows_of_task
from nanoloom.schedule.language import (
    ALL,
    Directive,
    Nanokernel,
    Parallel,
    Prefetch,
    Schedule,
    StoreAt,
    Tile,
)
from nanoloom.schedule.library.candidates import schedule_of
from nanoloom.schedule.library.channels_last_windows import windows
from nanoloom.schedule.library.contraction import contraction
from nanoloom.schedule.library.fused_product_chain import sizes as sizes_of
from nanoloom.schedule.packing import Pack
from nanoloom.target.facts import Target

FRONT = (Pack, StoreAt)  # said in front of the loops
LOOPS = (Parallel, Tile, Prefetch)  # of kernels of their own


def fused_overlapping_pool(
    nest: LoopNest, found: OverlappingPool, target: Target
) -> Schedule | None:
    """A task for each block of rows and panel of columns.

    None where the product has no register tiles.
    """
    image, pool = parts_of(nest, found)
    made = contraction(image, found.product, found.end, target)
    pooled = windows(pool, found.pool, target)
    if made is None or pooled is None:
        return None
    (packing,) = (word for word in made.directives if isinstance(word, Pack))
    (plan,) = (word for word in made.directives if isinstance(word, Nanokernel))
    inside = [StoreAt(found.pad.name, "padded")] if found.pad else []
    front = [word for word in made.directives if isinstance(word, FRONT)]
    tasks = [word for word in front if getattr(word, "where", "") == "task"]
    down = row_window_of(found.pool)
    assert down is not None, "a pool of windows"
    rows = rows_of_task(found.shape, down, packing.columns, target)
    words: tuple[Directive, ...] = (
        *(word for word in front if word not in tasks),
        Parallel(found.pool.name, task_of(found, rows, packing.columns), ALL),
        *inside,
        *tasks,
        Tile(found.end.name, tile_of(found, plan.rows), ALL),
        *(x for x in made.directives if not isinstance(x, (*FRONT, *LOOPS))),
        *(x for x in pooled.directives if not isinstance(x, (StoreAt, *LOOPS))),
    )
    reason = f"{rows} rows of a pool from the cache; {made.reason}"
    return schedule_of(nest, target, (words, reason))


def parts_of(nest: LoopNest, found: OverlappingPool) -> tuple[LoopNest, LoopNest]:
    """The product up to its image, and the pool, as kernels of their own."""
    first = (*nest.upstream(found.end.name), found.end)
    around = (*first, *([found.pad] if found.pad else []))
    behind = tuple(stage for stage in nest.stages if stage not in around)
    image = replace(nest, stages=first, results=(found.end.writes[0].buffer,))
    return image, replace(nest, stages=behind)


def task_of(found: OverlappingPool, rows: int, columns: int) -> tuple[int, ...]:
    """Sizes of tasks along the pool's axes."""
    images = (1,) * (found.pool.leading_parallel() - 3)
    return (*images, rows, 0, columns)


def tile_of(found: OverlappingPool, rows: int) -> tuple[int, ...]:
    """Sizes of the register tile along the axes of the image's last stage."""
    shape = found.shape
    *images, row = shape.rows
    return sizes_of(
        shape, found.product, found.end, {**dict.fromkeys(images, 1), row: rows}
    )
