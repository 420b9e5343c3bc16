"""The default schedule of a kernel: what is known to be fast for its stages."""

from __future__ import annotations

from nanoloom.nest.nest import LoopNest
from nanoloom.nest.panel_parts import planned_panels
from nanoloom.nest.product_chain import chain_of
from nanoloom.nest.statement import Statement
from nanoloom.schedule.language import Schedule
from nanoloom.schedule.library.candidates import schedule_of
from nanoloom.schedule.library.channels_last_windows import (
    down_planes,
    in_planes,
    windows,
)
from nanoloom.schedule.library.contraction import contraction
from nanoloom.schedule.library.decisions import with_decisions
from nanoloom.schedule.library.dynamic_tasks import with_ends
from nanoloom.schedule.library.fused_parts import fused_panels, fused_parts
from nanoloom.schedule.library.fused_permutation import fused_permutation
from nanoloom.schedule.library.fused_product_chain import product_chain
from nanoloom.schedule.library.loop_forms import with_forms
from nanoloom.schedule.library.outer_products import outer_products
from nanoloom.schedule.library.register_tiles import (
    columns_only,
    is_window,
    register_tiles,
)
from nanoloom.schedule.library.register_transposes import with_transposes
from nanoloom.schedule.library.row_tasks import by_rows
from nanoloom.schedule.library.small_m import small_m
from nanoloom.schedule.library.stencils import stencils
from nanoloom.schedule.library.tile_width import is_of_any_width
from nanoloom.schedule.library.vector_axis import runs_across
from nanoloom.schedule.library.vectors import vectors
from nanoloom.schedule.library.written_out import written_out
from nanoloom.target.facts import Target


def choose(nest: LoopNest, target: Target) -> Schedule:
    """A schedule for all of a nest, from its values and the target's facts alone."""
    made = with_ends(chosen(nest, target), nest)
    made = with_forms(with_transposes(made, nest, target), nest, target)
    return with_decisions(made, nest, target)


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


def of_several(nest: LoopNest, last: Statement, target: Target) -> Schedule | None:
    """Of a product with what else a task makes in its cache, as the kernel's plan says:
    another product, or what reads its result at other places; or of reductions."""
    chain = chain_of(nest)
    if chain is not None:
        return product_chain(nest, chain, last, target)
    found = planned_panels(nest)
    if found is not None and found.is_permutation:
        return fused_permutation(found, target) or by_rows(nest, last, target)
    if found is not None:
        return fused_panels(found, target, chosen) or by_rows(nest, last, target)
    readers = [nest.stage(fusion.consumer) for fusion in nest.plan]
    if readers and not any(reader.is_contraction for reader in readers):
        return fused_parts(nest, last, target, chosen)
    return None


def by_product(nest: LoopNest, last: Statement, target: Target) -> Schedule | None:
    """Of a kernel with a single product, if a family of instructions takes it."""
    products = nest.products
    known = written_out(nest, last, target) if len(products) == 1 else None
    if known is not None:
        return known
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
        return contraction(nest, products[0], last, target) or small_m(
            nest, products[0], last, target
        )
    return None
