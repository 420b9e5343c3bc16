"""Chains of two products on vectors as wide as the machine's, whatever it has.

    for each head, block of rows:
        a = q k' by register tiles;  p = f(a), row by row;  y = p v by register tiles

As in fused_product_chain.py, but the tiles are words of loops: nanokernels know how
wide theirs are.
"""

from __future__ import annotations

from math import prod

from nanoloom.nest.contraction import Contraction
from nanoloom.nest.extent import Lanes
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.product_chain import ProductChain
from nanoloom.nest.statement import Statement
from nanoloom.schedule import register_tile
from nanoloom.schedule.language import ALL, Directive, Parallel
from nanoloom.schedule.library.candidates import Form
from nanoloom.schedule.library.finish_at_tile import points
from nanoloom.schedule.library.semiring import step_cost
from nanoloom.schedule.library.tile_width import group_of, tile_cost
from nanoloom.schedule.library.vectors import is_scalable, lanes_of, vectors
from nanoloom.target.facts import ADDRESSES, Target


def suits_any_width(chain: ProductChain, target: Target) -> bool:
    """Whether both products can have such vectors along their columns."""
    if target.vector.vscale_max == 1:
        return False
    return all(
        is_scalable(stage, shape.column, target)
        and {x.element for x in (*stage.reads, *stage.writes)} in ({"f32"}, {"f64"})
        for stage, shape in ((chain.first, chain.inner), (chain.last, chain.outer))
    )


def any_width(
    nest: LoopNest, chain: ProductChain, last: Statement, rows: int, target: Target
) -> Form:
    """The words for blocks of so many rows, and the reason."""
    outer = chain.outer
    task = dict.fromkeys(outer.shared, 1) | dict.fromkeys(outer.rows, rows)
    axes = range(len(outer.extents)) if last == chain.last else outer.result
    pairs = ((chain.first, chain.inner), (chain.last, chain.outer))
    tiles = [tile_of(stage, shape, rows, target) for stage, shape in pairs]
    words: list[Directive] = [
        Parallel(last.name, tuple(task.get(d, 0) for d in axes), ALL)
    ]
    for (stage, shape), tile in zip(pairs, tiles, strict=True):
        words += tile_words(stage, shape, tile, target)
    rest = [s for s in nest.stages if s not in (chain.first, chain.last)]
    words += vectors(rest, target)
    keys = outer.extents[outer.reduced[0]]
    told = " and ".join(f"{rows_} x {lanes} lanes" for rows_, lanes, _ in tiles)
    return tuple(words), f"{rows} rows of {keys} scores at a time, tiles of {told}"


Tile = tuple[int, Lanes, int]  # rows, lanes of a vector, vectors


def tile_of(stage: Statement, shape: Contraction, rows: int, target: Target) -> Tile:
    """The cheapest register tile of one of the products."""
    count, step = lanes_of(stage, target), step_cost(stage, target)
    columns, unit = shape.extents[shape.column], target.vector
    most = min(rows, prod(shape.extents[d] for d in shape.rows))
    _, found, many = min(
        (round(tile_cost(r, v, columns, count, unit, step), 3), r, v)
        for r, v in register_tile.candidates(unit.registers, step)
        if r <= min(most, ADDRESSES // 2)
    )
    group = group_of(many, target)
    return found, Lanes(count * group, scalable=True), many // group


def tile_words(
    stage: Statement, shape: Contraction, tile: Tile, target: Target
) -> tuple[Directive, ...]:
    """The points of a product's tile."""
    del target
    rows, lanes, many = tile
    names = [axis.name for axis in stage.axes if not axis.is_reduction]
    long = [d for d in shape.rows if shape.extents[d] > 1]
    jam = {names.index(stage.names[shape.column]): many}
    if long:
        jam = {names.index(stage.names[long[-1]]): rows, **jam}
    return points(stage, lanes, jam)
