"""Contractions: panels of columns and blocks of rows in parallel, register tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod

from nanoloom.nest.contraction import Contraction, roles
from nanoloom.nest.extent import Lanes
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule import register_tile
from nanoloom.schedule.families import (
    AMX,
    AMX_COLUMNS,
    SIDE,
    TILE_ROWS,
    TILE_STEPS,
    Family,
)
from nanoloom.schedule.language import Candidate, Nanokernel, Schedule
from nanoloom.schedule.library.candidates import with_candidates
from nanoloom.schedule.library.family import families_of
from nanoloom.schedule.library.multiply_adds import multiply_adds
from nanoloom.schedule.library.nanokernels import is_interleaved
from nanoloom.schedule.library.panels import (
    is_parameter,
    loop_sizes,
    other_vectors,
    prefetches,
    row_names,
    row_of,
    tiled,
    weight_packing,
)
from nanoloom.target.facts import Target
from nanoloom.target.instructions.x86 import TILE_CYCLES


def contraction(
    nest: LoopNest, root: Statement, last: Statement, target: Target
) -> Schedule | None:
    """Panels of columns (and blocks of rows) in parallel, register tiles inside.

    None where no nanokernel takes this form.
    """
    shape = roles(root)
    if shape is None or not suits(root, last, shape):
        return None
    packed = is_parameter(nest, root, shape)
    chosen, *others = families_of(nest, root, shape, target, packed) or (None,)
    if chosen is None:
        return None

    def made(family: Family) -> Schedule | None:
        if family.tiles:
            return matrix_tiles(nest, root, last, shape, family, target)
        return multiply_adds(nest, root, last, shape, family, target)

    best = made(chosen)
    return best and with_families(best, chosen, made, others, target)


def with_families(
    best: Schedule,
    chosen: Family,
    made: Callable[[Family], Schedule | None],
    others: Sequence[Family],
    target: Target,
) -> Schedule:
    """The schedule with those of other families among its candidates.

    Their costs are for the least work of the chosen family.
    """

    def weighed() -> Iterator[Candidate]:
        yield from best.candidates
        for family in others:
            other = made(family)
            slower = least_cycles(family, target) / least_cycles(chosen, target)
            for candidate in other.candidates[:1] if other else ():
                yield replace(candidate, cost=candidate.cost * slower)

    return with_candidates((best.directives, best.reason), weighed)


def least_cycles(family: Family, target: Target) -> float:
    """Of a multiply-add of one vector of sums, where nothing else is waited for."""
    if family.tiles:
        return (
            TILE_CYCLES * target.lanes(32) / (AMX.rows**2 * TILE_STEPS * family.group)
        )
    return register_tile.arithmetic(1, 0, target.vector, family.cost) / family.group


def matrix_tiles(
    nest: LoopNest,
    root: Statement,
    last: Statement,
    shape: Contraction,
    family: Family,
    target: Target,
) -> Schedule:
    """Four tile registers of sums: 32 x 32 results (paper, Fig. 2c)."""
    row = row_of(shape)
    m = 1 if row is None else shape.extents[row]
    packings = weight_packing(nest, root, shape, AMX_COLUMNS, family)
    depth = chunk(shape, m, family, target)
    rows = min(m, TILE_ROWS)
    lanes, packed = Lanes(AMX_COLUMNS // 2), bool(packings)
    nanokernel = Nanokernel(rows, 2, lanes, packed, family.name, root.name, depth=depth)
    if not packings and row is not None:
        sizes, _ = loop_sizes(root, last, shape, nanokernel, AMX_COLUMNS, target)
        task = sizes[row if root == last else shape.result.index(row)] or m
        nanokernel = replace(
            nanokernel, copy_rhs=is_interleaved(shape, nanokernel, task, m, 1, target)
        )
    twice = "each operand" if m > TILE_ROWS // 2 else "the left operand"
    reason = f"{rows} x 32 sums: tile registers of 16 x 16 at most, {twice} used twice"
    loops = tiled(nest, root, last, shape, nanokernel, AMX_COLUMNS, target)
    behind = other_vectors(nest, root, target)
    names = row_names(root, shape)
    fetched = prefetches(nest, packings, loops, names, target)
    words = (*packings, *loops, *fetched, *behind)
    weighed = Candidate(words, reason, tiles_cost(shape, family))
    return Schedule(words, reason, lambda: [weighed])


def tiles_cost(shape: Contraction, family: Family) -> float:
    """What tile registers compute for what is wanted: they are always whole."""
    row = row_of(shape)
    steps = TILE_STEPS * family.group
    wanted = (
        (1 if row is None else shape.extents[row], TILE_STEPS),
        (shape.extents[shape.column], TILE_STEPS),
        (shape.extents[shape.reduced[-1]], steps),
    )
    return prod(-(-extent // size) * size / extent for extent, size in wanted)


def chunk(shape: Contraction, m: int, family: Family, target: Target) -> int:
    """So much of a sum at a time that its panel stays in the first-level cache.

    0 for all of it: where the panel fits, or a single tile reads it.  A step has two
    tiles of each operand there, and as much for sums.
    """
    step_bytes = 3 * SIDE * AMX.bytes
    depth = target.caches.l1d // step_bytes * TILE_STEPS * family.group
    large = shape.extents[shape.reduced[-1]] > depth
    return depth if large and len(shape.reduced) == 1 and m > TILE_ROWS else 0


def suits(root: Statement, last: Statement, shape: Contraction) -> bool:
    """Whether the nanokernels take this form."""
    if 0 in shape.extents or None in root.reads[shape.right].plain:
        return False
    written = last.writes[-1].plain
    return root == last or written == last.names[: len(shape.result)]
