"""Pools of tiles: windows none of which crosses the edge of a tile.

p[y, i, x, j, f] = max of t[y, s i + p, x, s j + q, f]: of t a step of the loops over y
and x reads one tile, and all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from nanoloom.nest.contraction import Contraction, elements, roles
from nanoloom.nest.index import Index
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement

MOST_PIXELS = 16  # of a tile: of F(4x4, 3x3)


@dataclass(frozen=True)
class TiledWindow:
    """An axis of an image: count tiles, each with `inner` windows of a pool.

    tap: which one of the reduced loops is within a window, `step` places long; step 0:
    nothing is reduced along the axis.
    """

    count: int
    inner: int = 1
    step: int = 0
    tap: int = 0


@dataclass(frozen=True)
class Pooled:
    """A product, what follows it at the same places up to `end`, and the pool."""

    product: Statement
    end: Statement
    pool: Statement
    shape: Contraction


def tiled_windows(
    pool: Statement, tiles: Sequence[tuple[int, ...]]
) -> list[TiledWindow] | None:
    """The axes of a pool, None if a window of it may cross the edge of a tile.

    tiles: for each axis of the image its extent, or (count, size) of tiles.
    """
    parallel = [a.name for a in pool.axes if not a.is_reduction]
    found: list[TiledWindow] = []
    indices = pool.reads[0].indices
    if len(indices) != len(parallel):
        return None
    for name, index, extents in zip(parallel, indices, tiles, strict=True):
        if index.axis == name and len(extents) == 1:
            found.append(TiledWindow(extents[0]))
            continue
        step, tap = window_of(pool, name, index)
        if not step or len(extents) != 2 or extents[1] % step:
            return None
        count, size = extents
        found.append(TiledWindow(count, size // step, step, tap - len(parallel)))
    return found if any(x.step for x in found) else None


def window_of(pool: Statement, name: str, index: Index) -> tuple[int, int]:
    """The step of windows of the same extent, and the place of the loop within one.

    (0, 0) for windows that overlap, leave something out or begin elsewhere.
    """
    if index.other or index.offset or len(index.terms) != 2:
        return 0, 0
    (axis, step), (tap, one) = index.terms
    place = pool.place(tap)
    reduced = pool.axes[place].is_reduction
    if axis != name or one != 1 or not reduced or pool.extents[place] != step:
        return 0, 0
    return step, place


def is_tile_pool(pool: Statement) -> bool:
    """Whether a stage reduces windows within tiles that lie around them.

    What it reads has an axis of tiles in front of each of their own.
    """
    if not pool.is_reduction or pool.is_contraction or not pool.reads:
        return False
    if not pool.reads[0].indices:  # a number
        return False
    reduced = {a.name for a in pool.axes if a.is_reduction}
    windows = [set(i.axes) & reduced for i in pool.reads[0].indices]
    pairs = zip([reduced, *windows], windows, strict=False)
    if windows[-1] or any(before and here for before, here in pairs):
        return False
    inside = [i for i, w in zip(pool.reads[0].indices, windows, strict=True) if w]
    axes = {name for index in inside for name in index.axes}
    sizes = [a.extent for a in pool.axes if a.name in axes]
    numbers = [size for size in sizes if isinstance(size, int)]
    linear = not any(index.other or index.offset for index in inside)
    return linear and len(numbers) == len(sizes) and prod(numbers) <= MOST_PIXELS


def makes_tiles(product: Statement) -> Contraction | None:
    """The roles of a product's axes, if vectors of a panel that lies in memory fit."""
    shape = roles(product)
    if shape is None or not shape.contiguous or len(shape.rows) != 1:
        return None
    if len(shape.reduced) != 1 or 0 in shape.extents:
        return None
    return shape if set(elements(product, shape)) == {"f32"} else None


def pooled(nest: LoopNest) -> Pooled | None:
    """The parts of a nest that is a product and a pool of its tiles."""
    if len(nest.products) != 1 or nest.last is None or not is_tile_pool(nest.last):
        return None
    (product,), pool = nest.products, nest.last
    end, shape = nest.writer(pool.reads[0].buffer), makes_tiles(product)
    return None if end is None or shape is None else Pooled(product, end, pool, shape)
