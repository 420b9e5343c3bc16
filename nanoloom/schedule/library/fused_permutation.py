"""Products whose result is turned in the cache (nest/panel_parts.py).

for block of the last stage's points, panel of columns (a task):
    t = product by register tiles, as in a kernel of its own
    y = t in another order of its axes, by squares in registers
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nanoloom.nest.panel_parts import PanelParts
from nanoloom.schedule.language import (
    ALL,
    Directive,
    Directives,
    Nanokernel,
    Parallel,
    Prefetch,
    Schedule,
    StoreAt,
)
from nanoloom.schedule.library.contraction import contraction
from nanoloom.schedule.library.panels import prefetches, row_names
from nanoloom.schedule.library.task_order import slowest_axis
from nanoloom.schedule.library.vectors import vectors
from nanoloom.schedule.packing import Pack
from nanoloom.target.facts import Target


def fused_permutation(found: PanelParts, target: Target) -> Schedule | None:
    """The tasks of the product; None where it has no register tiles."""
    made = contraction(found.front, found.product, found.end, target)
    turned = made and made.each(lambda words: around_permutation(words, found, target))
    return turned and replace(turned, reason=f"{turned.reason}; turned in the cache")


def around_permutation(
    words: Directives, found: PanelParts, target: Target
) -> Directives:
    """The words of a product, whose tasks are blocks of what permutes its result."""
    nest = found.nest
    tasks = next(word for word in words if isinstance(word, Parallel))
    sizes = dict(zip(nest.stage(tasks.stage).names, tasks.sizes, strict=False))
    outer = replace(
        tasks,
        stage=found.last.name,
        sizes=tuple(sizes.get(name, 0) for name in permuted_axes(found)),
        fuse=ALL,
        slowest=slowest_of(found, sizes, target),
    )
    packings = tuple(word for word in words if isinstance(word, Pack))
    packed = {packing.argument for packing in packings}
    ours = tuple(word for word in words if not isinstance(word, Pack))
    lies = isinstance(ours[0], StoreAt)  # an image without its border

    def again(word: Directive) -> bool:
        """Whether prefetches of panels say it, of the permutation's own loops."""
        is_panel = isinstance(word, Prefetch) and word.argument in packed
        return is_panel and (bool(word.loops) or not lies)

    permuted = tuple(outer if w == tasks else w for w in words if not again(w))
    loops = tuple(word for word in permuted if not isinstance(word, Pack))
    named = row_names(found.product, found.shape)
    fetched = () if lies else prefetches(nest, packings, loops, named, target)
    at = next(n for n, x in enumerate(permuted) if isinstance(x, Nanokernel)) + 1
    behind = vectors((found.last,), target)
    return (*permuted[:at], *fetched, *permuted[at:], *behind)


def slowest_of(
    found: PanelParts, sizes: Mapping[str, int], target: Target
) -> int | None:
    """The place of the axis that changes most rarely, among those of the last stage."""
    shape, end = found.shape, found.end
    own = end == found.product
    dims = dict(zip(end.names, range(len(sizes)) if own else shape.result, strict=True))
    names = permuted_axes(found)
    axes = [dims.get(name) for name in names]
    tasks = {dims[name]: sizes.get(name, 0) for name in names if name in dims}
    first = slowest_axis(found.nest, found.product, shape, tasks, target)
    return None if first is None else axes.index(first)


def permuted_axes(found: PanelParts) -> list[str]:
    """The axes of a permutation, by the names of those that it reads."""
    written = found.end.writes[0].plain
    names = dict(zip(found.consumer.reads[0].plain, written, strict=True))
    return [names[name] or "" for name in found.consumer.names]
