"""Stencils: every point of what is written reads some neighbours in one buffer.

    for task (a block of planes and rows):
        for some planes together: for row: for vector of points:
            b[i, j, k] = f(a[i, j + 1, k + 1], a[i + 2, j + 1, k + 1], ...)

Planes that are computed together share most of what they read, and a block's rows stay
in the cache from one plane to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from nanoloom.nest.granularity import FEWEST_TASKS, JAMMED, TASK_ELEMENTS
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.schedule.language import ALL, Parallel, Schedule
from nanoloom.schedule.library.candidates import schedule_of
from nanoloom.schedule.library.finish_at_tile import at_tile, is_finished, lanes_at_tile
from nanoloom.schedule.library.row_tasks import numbers
from nanoloom.schedule.library.vectors import vector_axis
from nanoloom.target.facts import Target

# Of a block, whose edges are read by its neighbours, too.  Rows of 1 KB: 32 to 256 of
# them are alike, 16 take 4 % longer, as measured out of memory.
ROWS = 32


@dataclass(frozen=True)
class Form:
    """An elementwise stage over a grid, and what follows at the same points.

    planes: the outermost axis along which it reads neighbours, by its place.
    """

    stage: Statement
    planes: int


def stencils(nest: LoopNest, last: Statement, target: Target) -> Schedule | None:
    """Blocks of planes and rows as tasks, some planes at once; None for others."""
    form = form_of(nest, last)
    if form is None:
        return None
    sizes = numbers(last)
    together = min(JAMMED, sizes[form.planes])
    tasks = task_sizes(sizes, form.planes, together)
    lanes = lanes_at_tile(nest, form.stage, target)
    directives = (
        Parallel(last.name, tasks, ALL if form.stage != last else ()),
        *at_tile(nest, form.stage, last, lanes, {form.planes: together}),
    )
    reason = f"{together} points of {last.names[form.planes]} share their neighbours"
    return schedule_of(nest, target, (directives, reason))


def form_of(nest: LoopNest, last: Statement) -> Form | None:
    """The first stage of a nest, if it reads neighbours across its vectors."""
    first = nest.stages[0]
    alone = not first.is_reduction and first.lanewise and is_finished(nest, first)
    extents = first.extents
    if not alone or not all(isinstance(e, int) and e for e in extents):
        return None
    if vector_axis(first) != len(extents) - 1 or first.writes[0].plain != first.names:
        return None
    for buffer in dict.fromkeys(read.buffer for read in first.reads):
        reads = [read for read in first.reads if read.buffer == buffer]
        for place, axis in enumerate(first.names[:-1]):
            offsets = {
                index.offset
                for read in reads
                for index in read.indices
                if index.terms == ((axis, 1),)
            }
            if len(offsets) > 1 and extents[place] != 1:
                return Form(first, place)
    return None


def task_sizes(sizes: list[int], planes: int, together: int) -> tuple[int, ...]:
    """Blocks of planes and of rows, whole along the vectors.

    Small grids have small tasks, so that there are several.
    """
    *grid, row = sizes
    wanted = max(1, TASK_ELEMENTS // row)
    blocks = [1] * len(grid)
    blocks[planes] = together
    if planes < len(grid) - 1:
        rows = min(grid[-1], max(ROWS, wanted // together))
        blocks[-1] = rows if grid[-1] > rows * 3 // 2 else grid[-1]
    else:
        blocks[-1] = min(grid[-1], max(1, wanted // together) * together)

    def tasks() -> int:
        return prod(-(-size // block) for size, block in zip(grid, blocks, strict=True))

    while blocks[planes] < min(ROWS // 2, grid[planes]) and tasks() >= 2 * FEWEST_TASKS:
        blocks[planes] += together
    return (*blocks, 0)
