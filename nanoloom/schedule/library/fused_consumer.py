"""Products whose result is read at other places in the cache (nest/fused_consumer.py).

for block of the last stage's points, panel of columns (a task):
    t = product by register tiles, of the points that the block reads
    y = windows of t, sums of its rows, or t in another order, by squares in registers

Inside of a task both are made as they are in kernels of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from nanoloom.nest.contraction import bits, roles
from nanoloom.nest.footprint import Sizes
from nanoloom.nest.fused_consumer import PANEL_VECTORS, FusedConsumer
from nanoloom.nest.nest import LoopNest, Role
from nanoloom.nest.statement import Axis
from nanoloom.nest.steps import number
from nanoloom.schedule.language import (
    ALL,
    Directive,
    Directives,
    Nanokernel,
    Parallel,
    Prefetch,
    Schedule,
    StoreAt,
    Tile,
)
from nanoloom.schedule.library.candidates import Form, schedule_of
from nanoloom.schedule.library.contraction import contraction
from nanoloom.schedule.library.fused_product_chain import plans_of
from nanoloom.schedule.library.panels import prefetches, row_names, row_of
from nanoloom.schedule.library.task_order import slowest_axis
from nanoloom.schedule.library.vectors import vectors
from nanoloom.schedule.packing import Pack
from nanoloom.target.facts import Target

FRONT = (Pack, StoreAt)  # said in front of the loops
LOOPS = (Parallel, Tile, Prefetch)  # of kernels of their own
Choose = Callable[[LoopNest, Target], Schedule]


def in_tasks_of(
    nest: LoopNest, found: FusedConsumer, target: Target, choose: Choose
) -> Schedule | None:
    """A task for each block; None where the product has no register tiles.

    choose: the schedule of what reads the product, as a kernel of its own.
    """
    if found.is_permutation:
        inside = found.inside(nest)
        made = contraction(inside, found.product, found.end, target)
        permuted = made and made.each(
            lambda words: around_permutation(words, nest, found, target)
        )
        return permuted and replace(
            permuted, reason=f"{permuted.reason}; turned in the cache"
        )
    words = tile_words(nest, found, target)
    if not any(isinstance(word, Nanokernel) for word in words):
        return None
    return schedule_of(nest, target, in_blocks(nest, found, words, target, choose))


def tile_words(nest: LoopNest, found: FusedConsumer, target: Target) -> Directives:
    """The words of a product of so many rows as a task has."""
    product, end, shape = found.product, found.end, found.shape
    inside = found.inside(nest)
    if nest.buffer(product.reads[shape.right].buffer).role is Role.CONSTANT:
        sizes = found.blocks(PANEL_VECTORS * target.lanes(bits("f32")), target.caches)
        block = found.product_of(nest, sizes)
        root, last = block.stage(product.name), block.stage(end.name)
        made = contraction(block, root, last, target)
        return made.directives if made is not None else ()
    rows = max(shape.extents[d] for d in shape.rows)
    plan, _ = plans_of(nest, shape, product, rows, target)[0]
    others = vectors([stage for stage in inside.stages if stage != product], target)
    return (plan, *others) if plan is not None else ()


def in_blocks(
    nest: LoopNest,
    found: FusedConsumer,
    made: Directives,
    target: Target,
    choose: Choose,
) -> Form:
    """The words of both in tasks that are blocks of the last stage."""
    (plan,) = (word for word in made if isinstance(word, Nanokernel))
    packings = [word for word in made if isinstance(word, Pack)]
    columns = plan.vectors * target.lanes(bits("f32"))
    columns = packings[0].columns if packings else columns
    front = [word for word in made if isinstance(word, FRONT)]
    tasks = [word for word in front if getattr(word, "where", "") == "task"]
    block = found.blocks(columns, target.caches)
    behind = choose(found.behind(nest, block), target).directives
    words: tuple[Directive, ...] = (
        *(word for word in front if word not in tasks),
        Parallel(found.last.name, sizes_in(found, block), ALL),
        *([StoreAt(found.pad.name, "padded")] if found.pad else []),
        *tasks,
        Tile(found.end.name, tile_of(found, nest, block, plan.rows), ALL),
        *(word for word in made if not isinstance(word, (*FRONT, *LOOPS))),
        *(word for word in behind if not isinstance(word, (StoreAt, *LOOPS))),
    )
    points = " x ".join(str(block[name]) for name in found.names)
    reason = f"tiles of {plan.rows} x {plan.vectors} vectors, read in the cache"
    return words, f"{reason} by blocks of {points}"


def sizes_in(found: FusedConsumer, block: Sizes) -> tuple[int, ...]:
    """Of tasks along the last stage's axes, 0 for whole ones; columns are in panels."""

    def size(axis: Axis) -> int:
        here = number(block.get(axis.name, 1))
        is_whole = axis.name != found.column and here == axis.extent
        return 0 if axis.is_reduction or is_whole else here

    return tuple(map(size, found.last.axes))


def tile_of(
    found: FusedConsumer, nest: LoopNest, block: Sizes, rows: int
) -> tuple[int, ...]:
    """Sizes of the register tile along the axes of what is read.

    Its rows run along an axis of which a task reads several points.
    """
    shape, row = found.shape, row_of(found.shape)
    here = roles(found.product_of(nest, block).stage(found.product.name))
    if here is not None and row_of(here) is not None:
        row = row_of(here)
    ones = dict.fromkeys((*shape.shared, *shape.rows), 1)
    wanted = ones | ({} if row is None else {row: rows})
    return shape.sizes(wanted, own=found.product == found.end)


def around_permutation(
    words: Directives, nest: LoopNest, found: FusedConsumer, target: Target
) -> Directives:
    """The words of a product, whose tasks are blocks of what permutes its result."""
    tasks = next(word for word in words if isinstance(word, Parallel))
    sizes = dict(zip(nest.stage(tasks.stage).names, tasks.sizes, strict=False))
    outer = replace(
        tasks,
        stage=found.last.name,
        sizes=tuple(sizes.get(name, 0) for name in permuted_axes(found)),
        fuse=ALL,
        slowest=slowest_of(found, sizes, nest, target),
    )
    permuted = tuple(
        outer if word == tasks else word
        for word in words
        if not (isinstance(word, Prefetch) and word.loops)
    )
    packings = tuple(word for word in permuted if isinstance(word, Pack))
    loops = tuple(word for word in permuted if not isinstance(word, Pack))
    named = row_names(found.product, found.shape)
    lies = isinstance(loops[0], StoreAt)  # an image without its border
    fetched = () if lies else prefetches(nest, packings, loops, named, target)
    at = next(n for n, x in enumerate(permuted) if isinstance(x, Nanokernel)) + 1
    behind = vectors((found.last,), target)
    return (*permuted[:at], *fetched, *permuted[at:], *behind)


def slowest_of(
    found: FusedConsumer, sizes: Mapping[str, int], nest: LoopNest, target: Target
) -> int | None:
    """The place of the axis that changes most rarely, among those of the last stage."""
    shape, end = found.shape, found.end
    own = end == found.product
    dims = dict(zip(end.names, range(len(sizes)) if own else shape.result, strict=True))
    names = permuted_axes(found)
    axes = [dims.get(name) for name in names]
    tasks = {dims[name]: sizes.get(name, 0) for name in names if name in dims}
    first = slowest_axis(nest, found.product, shape, tasks, target)
    return None if first is None else axes.index(first)


def permuted_axes(found: FusedConsumer) -> list[str]:
    """The axes of a permutation, by the names of those that it reads."""
    written = found.end.writes[0].plain
    names = dict(zip(found.read.plain, written, strict=True))
    return [names[name] or "" for name in found.consumer.names]
