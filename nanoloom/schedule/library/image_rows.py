"""How many rows of an image a task computes for a panel of weights.

One after the other they read the same panel, from the second-level cache: with a
single row for each task all weights would come from memory once a row.  Where a row
fits a tile register of a matrix unit, a tile has two of them, and reads a panel half as
often.
"""

from __future__ import annotations

from math import prod

from nanoloom.nest.contraction import Contraction, bits
from nanoloom.nest.granularity import FEWEST_TASKS
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.families import FAMILIES, TILE_ROWS, TILE_STEPS, Family
from nanoloom.schedule.language import Nanokernel
from nanoloom.target.facts import Target

Sizes = tuple[int, ...]


def with_image_rows(
    nest: LoopNest,
    root: Statement,
    shape: Contraction,
    plan: Nanokernel,
    sizes: tuple[Sizes, Sizes],
    target: Target,
) -> tuple[Sizes, Sizes]:
    """Sizes of tasks, and of the tiles inside them, that have several rows of an image.

    sizes: with one row in each, which stay where there is nothing to win.
    """
    family, (outer, inner) = FAMILIES[plan.family], sizes
    high = [d for d in shape.rows if shape.extents[d] > 1][:-1]
    alone = bool(plan.depth or (shape.shared and family.tiles))
    if not plan.packed or alone or not high:
        return sizes
    pairs = family.tiles and fills_registers(shape, family)
    rows = rows_of_task(nest, root, shape, pairs, target)
    if rows == 1:
        return sizes
    alike = len(outer) == len(shape.extents)
    place = high[-1] if alike else shape.result.index(high[-1])
    tile = (0,) * len(inner) if pairs else with_number(inner, place, 1)
    return with_number(outer, place, rows), tile


def with_number(sizes: Sizes, place: int, number: int) -> Sizes:
    return (*sizes[:place], number, *sizes[place + 1 :])


def fills_registers(shape: Contraction, family: Family) -> bool:
    """Whether a row's pixels are one tile register's, with nothing over an edge."""
    *_, wide = (shape.extents[d] for d in shape.rows if shape.extents[d] > 1)
    columns, depth = (shape.extents[d] for d in (shape.column, shape.reduced[-1]))
    whole = depth % (TILE_STEPS * family.group) == 0
    return wide <= TILE_STEPS and columns % TILE_ROWS == 0 and whole


def rows_of_task(
    nest: LoopNest, root: Statement, shape: Contraction, pairs: bool, target: Target
) -> int:
    """A divisor of the image's rows, so that all tasks are alike; 1: nothing to win.

    A task has one group of channels, of several.
    """
    *_, extent, _ = (shape.extents[d] for d in shape.rows if shape.extents[d] > 1)
    left, right = (root.reads[n] for n in (shape.left, shape.right))
    image = [n for n in nest.buffer(left.buffer).shape if isinstance(n, int)]
    groups = prod(shape.extents[d] for d in shape.shared)
    row = prod(image) * bits(left.element) // 8 // extent // groups
    depth = prod(shape.extents[d] for d in shape.reduced)
    columns = shape.extents[shape.column]
    weights = groups * depth * columns * bits(right.element) // 8
    most = max(1, target.caches.resident // row)
    if stay(weights, target):
        if not pairs:
            return 1
        most = min(most, max(2, extent * (columns // TILE_ROWS) // (2 * FEWEST_TASKS)))
    found = [n for n in range(1, min(extent, most) + 1) if extent % n == 0]
    return found[-1]


def stay(weights: int, target: Target) -> bool:
    """Whether so many bytes are found in the cache again by the next row."""
    return weights <= target.caches.resident
