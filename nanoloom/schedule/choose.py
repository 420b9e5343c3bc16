"""The default schedule of a kernel: what is known to be fast for its stages."""

from __future__ import annotations

from nanoloom.nest.chain import chain_of
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.pooled import pooled
from nanoloom.nest.pooled_rows import summed
from nanoloom.nest.stage import Stage
from nanoloom.nest.turned import turned
from nanoloom.nest.windowed import windowed
from nanoloom.schedule.language import Schedule
from nanoloom.schedule.library.chain import chained
from nanoloom.schedule.library.contraction import contraction
from nanoloom.schedule.library.dots import dots
from nanoloom.schedule.library.forms import with_forms
from nanoloom.schedule.library.open_tasks import with_ends
from nanoloom.schedule.library.outer_products import outer_products
from nanoloom.schedule.library.pooled import pooled_tiles
from nanoloom.schedule.library.pooled_rows import summed_rows
from nanoloom.schedule.library.register_tiles import (
    columns_only,
    is_window,
    register_tiles,
)
from nanoloom.schedule.library.rows import by_rows
from nanoloom.schedule.library.stencils import stencils
from nanoloom.schedule.library.tile_width import is_of_any_width
from nanoloom.schedule.library.turned import turned_result
from nanoloom.schedule.library.turns import with_turns
from nanoloom.schedule.library.vector_axis import runs_across
from nanoloom.schedule.library.vectors import vectors
from nanoloom.schedule.library.weighed import schedule_of
from nanoloom.schedule.library.windowed import pooled_windows
from nanoloom.schedule.library.windows import down_planes, in_planes, windows
from nanoloom.target.facts import Target


def choose(nest: LoopNest, target: Target) -> Schedule:
    """A schedule for all of a nest, from its values and the target's facts alone."""
    made = with_ends(chosen(nest, target), nest)
    return with_forms(with_turns(made, nest, target), nest, target)


def chosen(nest: LoopNest, target: Target) -> Schedule:
    """What its stages are made of, by the first family that knows them."""
    last = nest.last
    if last is None:
        words = vectors(nest.stages, target)
        return schedule_of(nest, target, (words, "nothing to share"))
    together = of_several(nest, last, target)
    if together is not None:
        return together
    if any(runs_across(product, target) for product in nest.products):
        return by_rows(nest, last, target)
    return by_product(nest, last, target) or (
        register_tiles(nest, last, target)
        or windows(nest, last, target)
        or columns_only(nest, last, target)
        or stencils(nest, last, target)
        or by_rows(nest, last, target)
    )


def of_several(nest: LoopNest, last: Stage, target: Target) -> Schedule | None:
    """Of a product with what else a task makes in its cache: another product, a pool,
    sums, or a turn of its results."""
    chain = chain_of(nest)
    if chain is not None:
        return chained(nest, chain, last, target)
    pool = pooled(nest)
    if pool is not None:
        return pooled_tiles(nest, pool, target)
    rows = summed(nest)
    if rows is not None:
        return summed_rows(nest, rows, target)
    overlapping = windowed(nest)
    if overlapping is not None:
        return pooled_windows(nest, overlapping, target) or by_rows(nest, last, target)
    turn = turned(nest)
    return None if turn is None else turned_result(nest, turn, target)


def by_product(nest: LoopNest, last: Stage, target: Target) -> Schedule | None:
    """Of a kernel with a single product, if a family of instructions takes it."""
    products = nest.products
    if len(products) == 1:
        schedule = outer_products(nest, products[0], last, target)
        if schedule is not None:
            return schedule
    if len(products) == 1 and down_planes(nest, last, target):
        return windows(nest, last, target)
    if len(products) == 1 and is_of_any_width(nest, products[0], target):
        schedule = register_tiles(nest, last, target)
        if schedule is not None:
            return schedule
    if len(products) == 1 and in_planes(nest, last, target):
        return windows(nest, last, target)
    if len(products) == 1 and not is_window(nest, last):
        return contraction(nest, products[0], last, target) or dots(
            nest, products[0], last, target
        )
    return None
