"""Contractions: panels of columns and blocks of rows in parallel, register tiles."""

from __future__ import annotations

from nanoloom.nest.contraction import Contraction, roles
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.stage import Stage
from nanoloom.schedule.families import TILE_ROWS, TILE_STEPS, Family
from nanoloom.schedule.language import Nanokernel, Schedule
from nanoloom.schedule.library.family import family_of
from nanoloom.schedule.library.multiply_adds import multiply_adds
from nanoloom.schedule.library.panels import (
    is_parameter,
    other_vectors,
    prefetches,
    row_of,
    tiled,
    weight_packing,
)
from nanoloom.target.facts import Target

AMX_COLUMNS = 32
# Bytes of a step in the first-level cache: two tiles of each operand, as much for sums.
STEP_BYTES = 3 * 2048


def contraction(
    nest: LoopNest, root: Stage, last: Stage, target: Target
) -> Schedule | None:
    """Panels of columns (and blocks of rows) in parallel, register tiles inside.

    None where no nanokernel takes this form.
    """
    shape = roles(root)
    if shape is None or not suits(root, last, shape):
        return None
    packed = is_parameter(nest, root, shape)
    family = family_of(nest, root, shape, target, packed)
    if family is None:
        return None
    if family.tiles:
        return matrix_tiles(nest, root, last, shape, family, target)
    return multiply_adds(nest, root, last, shape, family, target)


def matrix_tiles(
    nest: LoopNest,
    root: Stage,
    last: Stage,
    shape: Contraction,
    family: Family,
    target: Target,
) -> Schedule:
    """Four tile registers of sums: 32 x 32 results (paper, Fig. 2c)."""
    row = row_of(shape)
    m = 1 if row is None else shape.extents[row]
    packings = weight_packing(nest, root, shape, AMX_COLUMNS, family)
    fetched = prefetches(nest, root, shape)
    depth = chunk(shape, m, family, target)
    rows = min(m, TILE_ROWS)
    nanokernel = Nanokernel(
        rows, 2, bool(packings), family.name, root.name, depth=depth
    )
    twice = "each operand" if m > TILE_ROWS // 2 else "the left operand"
    reason = f"{rows} x 32 sums: tile registers of 16 x 16 at most, {twice} used twice"
    loops = tiled(root, last, shape, nanokernel, AMX_COLUMNS, target)
    behind = other_vectors(nest, root, target)
    return Schedule((*packings, *fetched, *loops, *behind), reason)


def chunk(shape: Contraction, m: int, family: Family, target: Target) -> int:
    """So much of a sum at a time that its panel stays in the first-level cache.

    0 for all of it: where the panel fits, or a single tile reads it.
    """
    depth = target.caches.l1d // STEP_BYTES * TILE_STEPS * family.group
    large = shape.extents[shape.reduced[-1]] > depth
    return depth if large and len(shape.reduced) == 1 and m > TILE_ROWS else 0


def suits(root: Stage, last: Stage, shape: Contraction) -> bool:
    """Whether the nanokernels take this form."""
    if 0 in shape.extents or None in root.reads[shape.right].plain:
        return False
    written = last.writes[-1].plain
    return root == last or written == last.names[: len(shape.result)]
