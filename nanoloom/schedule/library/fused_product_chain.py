"""Chains of two products: blocks of rows in parallel, what is between in the cache.

    for each head, block of rows:
        a = q k' by register tiles, with what follows at the same places
        p = f(a), row by row: of attention, a softmax
        y = p v by register tiles

Nothing but the block's rows of `a` is kept, so that they never reach memory.  With
vectors as wide as the machine's, whatever it has, the tiles are words of loops:
nanokernels know how wide theirs are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from nanoloom.nest.contraction import Contraction, bits
from nanoloom.nest.extent import Lanes
from nanoloom.nest.granularity import BLOCK_ROWS
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.product_chain import ProductChain
from nanoloom.nest.statement import Statement
from nanoloom.schedule import register_tile
from nanoloom.schedule.families import (
    AMX_BF16,
    AMX_COLUMNS,
    FAMILIES,
    FMA_FAMILY,
    TILE_ROWS,
)
from nanoloom.schedule.language import (
    ALL,
    Candidate,
    Directive,
    Nanokernel,
    Parallel,
    Schedule,
    Tile,
)
from nanoloom.schedule.library import semiring
from nanoloom.schedule.library.candidates import with_candidates
from nanoloom.schedule.library.contraction import tiles_cost
from nanoloom.schedule.library.family import family_of, step_cost
from nanoloom.schedule.library.finish_at_tile import points
from nanoloom.schedule.library.nanokernels import (
    Operands,
    is_interleaved,
    nanokernel_of,
)
from nanoloom.schedule.library.small_m import lanes_and_tile
from nanoloom.schedule.library.tile_width import group_of, tile_cost
from nanoloom.schedule.library.vectors import is_scalable, lanes_of, vectors
from nanoloom.schedule.predicted_cost import predicted
from nanoloom.target.facts import ADDRESSES, Target


@dataclass(frozen=True)
class AnyWidth:
    """A register tile of vectors as wide as the machine's."""

    rows: int
    vectors: int
    lanes: Lanes


Plan = tuple[Nanokernel | AnyWidth | None, float]  # and what is predicted of its tile
# No nanokernel: the first product's operands lie along the sum (library/small_m.py).
DOTS: list[tuple[Nanokernel | None, float]] = [(None, 0.0)]


def product_chain(
    nest: LoopNest, chain: ProductChain, last: Statement, target: Target
) -> Schedule:
    """The schedule of a chain, and of what follows its last product up to `last`."""
    keys = chain.outer.extents[chain.outer.reduced[0]]
    m = prod(chain.outer.extents[d] for d in chain.outer.rows)
    family = family_of(nest, chain.first, chain.inner, target, packed=False)
    # Tile registers take more rows: every task weaves both right operands anew.
    weaves, caches = family is AMX_BF16, target.caches
    room = caches.panel if weaves else caches.l1d
    most = min(m, BLOCK_ROWS if weaves else BLOCK_ROWS // 2)
    rows = max(1, min(most, room // (keys * bits("f32") // bits("u8"))))
    pairs = plan_pairs(nest, chain, rows, target)
    tile, _ = pairs[0][1]
    if tile and tile.rows < rows < most:
        rows -= rows % tile.rows
        pairs = plan_pairs(nest, chain, rows, target)
    block = Block(nest, chain, last, rows, target)
    best = block.with_tiles(*pairs[0])
    return with_candidates(
        (best.directives, best.reason),
        lambda: [block.with_tiles(*pair) for pair in pairs],
    )


def plan_pairs(
    nest: LoopNest, chain: ProductChain, rows: int, target: Target
) -> list[tuple[Plan, Plan]]:
    """The tiles of both products in a task of so many rows, the chosen ones first."""
    first, root, inner, outer = chain.first, chain.last, chain.inner, chain.outer
    if suits_any_width(chain, target):
        wide = ((first, inner), (root, outer))
        one, other = (any_width(*each, rows, target) for each in wide)
        return [(one, other)]
    tiles = plans_of(nest, inner, first, rows, target) if inner.contiguous else DOTS
    one, *ones = tiles
    other, *others = plans_of(nest, outer, root, rows, target)
    return [(one, other), *((x, other) for x in ones), *((one, x) for x in others)]


@dataclass(frozen=True)
class Block:
    """Some rows of both products, which are a task."""

    nest: LoopNest
    chain: ProductChain
    last: Statement
    rows: int
    target: Target

    def with_tiles(self, one: Plan, other: Plan) -> Candidate:
        """The words for nanokernels of both products, and what they may cost."""
        nest, last, target = self.nest, self.last, self.target
        first, root = self.chain.first, self.chain.last
        inner, outer = self.chain.inner, self.chain.outer
        task = dict.fromkeys(outer.shared, 1) | dict.fromkeys(outer.rows, self.rows)
        scores = first, *after_scores(nest, first)
        rest = [s for s in nest.stages if s not in (first, root)]
        directives: tuple[Directive, ...] = (
            Parallel(last.name, outer.sizes(task, own=root == last), ALL),
            *products(inner, scores, one[0], self.rows, target),
            *products(outer, epilogue(nest, root, last), other[0], self.rows, target),
            *vectors(rest, target),
        )
        keys = outer.extents[outer.reduced[0]]
        plans = {first.name: one, root.name: other}
        reason = (
            f"{self.rows} rows of {keys} scores at a time, tiles of "
            f"{told([x for x, _ in plans.values()])}"
        )
        costs = {n: cost for n, (x, cost) in plans.items() if isinstance(x, Nanokernel)}
        made = Schedule(directives).apply(nest)
        return Candidate(directives, reason, predicted(made, target, costs))


def told(tiles: Sequence[Nanokernel | AnyWidth | None]) -> str:
    """Rows and vectors of some tiles, or the lanes of these."""
    wide = [f"{x.rows} x {x.lanes} lanes" for x in tiles if isinstance(x, AnyWidth)]
    known = [f"{x.rows} x {x.vectors}" for x in tiles if isinstance(x, Nanokernel)]
    return " and ".join(wide) or f"{' and '.join(known)} vectors"


def suits_any_width(chain: ProductChain, target: Target) -> bool:
    """Whether both products can have vectors of any width along their columns."""
    if target.vector.vscale_max == 1:
        return False
    return all(
        is_scalable(stage, shape.column, target)
        and {x.element for x in (*stage.reads, *stage.writes)} in ({"f32"}, {"f64"})
        for stage, shape in ((chain.first, chain.inner), (chain.last, chain.outer))
    )


def any_width(stage: Statement, shape: Contraction, rows: int, target: Target) -> Plan:
    """The cheapest register tile of one of the products."""
    count, step = lanes_of(stage, target), semiring.step_cost(stage, target)
    columns, unit = shape.extents[shape.column], target.vector
    most = min(rows, prod(shape.extents[d] for d in shape.rows))
    cost, found, many = min(
        (round(tile_cost(r, v, columns, count, unit, step), 3), r, v)
        for r, v in register_tile.candidates(unit.registers, step)
        if r <= min(most, ADDRESSES // 2)
    )
    group = group_of(many, target)
    lanes = Lanes(count * group, scalable=True)
    return AnyWidth(found, many // group, lanes), cost


def plans_of(
    nest: LoopNest, shape: Contraction, stage: Statement, rows: int, target: Target
) -> list[tuple[Nanokernel | None, float]]:
    """The nanokernels of one of the products; its right operand is an activation."""
    if not shape.contiguous:
        return DOTS
    if not shape.rows:  # each of the task's has a right operand of its own
        rows = 1
    family = family_of(nest, stage, shape, target, packed=False) or FMA_FAMILY
    if family.tiles:
        rows_, lanes = min(rows, TILE_ROWS), Lanes(AMX_COLUMNS // 2)
        plan = Nanokernel(rows_, 2, lanes, False, family.name, stage.name)
        extent = max((shape.extents[d] for d in shape.rows), default=1)
        places = -(-shape.extents[shape.column] // AMX_COLUMNS)
        plan = replace(
            plan,
            copy_rhs=is_interleaved(
                shape, plan, min(rows, extent), extent, places, target
            ),
        )
        return [(plan, tiles_cost(shape, family))]
    width = bits(stage.writes[0].element)
    columns = shape.extents[shape.column]
    cost = step_cost(family, stage, shape, target, packed=False)
    tiles = register_tile.best_of_each_width(
        register_tile.ranked(rows, columns, width, target.vector, cost)
    )
    product = Operands(stage, shape, family)
    plans = [(nanokernel_of(x, product, target), x.cost) for x in tiles]
    if any(stage.axes[axis].is_sample for axis in shape.rows):
        # How many rows a tile has, inside of a task's, is found only as it runs.
        plans = [(replace(plan, convert_lhs=0), cost) for plan, cost in plans]
    return [*plans]


def products(
    shape: Contraction,
    stages: Sequence[Statement],
    plan: Nanokernel | AnyWidth | None,
    rows: int,
    target: Target,
) -> tuple[Directive, ...]:
    """Register tiles of stages[0], with what follows it up to stages[-1].

    rows: of a task.  Without tiles what follows finds results of all of them in half of
    the first-level cache.
    """
    product, last = stages[0], stages[-1]
    if isinstance(plan, AnyWidth):
        names = [axis.name for axis in product.axes if not axis.is_reduction]
        long = [d for d in shape.rows if shape.extents[d] > 1]
        jam = {names.index(product.names[d]): plan.rows for d in long[-1:]}
        column = names.index(product.names[shape.column])
        return points(product, plan.lanes, {**jam, column: plan.vectors})
    # Each is read by the one fused before it.
    fused = tuple(stage.name for stage in reversed(stages[:-1]))
    if plan is None:
        room = target.caches.l1d // 2
        columns = {shape.column: room // (rows * bits("f32") // bits("u8"))}
        tile = Tile(last.name, shape.sizes(columns, own=product == last), fused)
        return tile, *lanes_and_tile(product, shape, target)
    tiles = FAMILIES[plan.family].tiles
    width = bits(product.writes[0].element)
    lanes = AMX_COLUMNS // 2 if tiles else target.vector.bits // width
    inner = dict.fromkeys(shape.rows, plan.rows) | {shape.column: plan.vectors * lanes}
    if not shape.rows:
        inner |= dict.fromkeys(shape.shared, 1)
    return Tile(last.name, shape.sizes(inner, own=product == last), fused), plan


def after_scores(nest: LoopNest, first: Statement) -> tuple[Statement, ...]:
    """The elementwise stages behind the first product, up to the softmax."""
    found: list[Statement] = []
    end = first
    while True:
        written = end.writes[0].buffer
        readers = nest.readers(written)
        if len(readers) != 1:
            return tuple(found)
        (end,) = readers
        reading = next(x for x in end.reads if x.buffer == written)
        if not end.follows(reading.indices):
            return tuple(found)
        found.append(end)


def epilogue(nest: LoopNest, root: Statement, last: Statement) -> tuple[Statement, ...]:
    """The second product and the elementwise stages behind it, in order."""
    begin, end = nest.stages.index(root), nest.stages.index(last)
    return tuple(s for s in nest.stages[begin : end + 1] if s.reads)


__all__ = ["product_chain"]
