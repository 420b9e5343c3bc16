"""Kernels without a nanokernel: rows in parallel, then vector loops."""

from __future__ import annotations

from math import prod

from nanoloom.nest.contraction import bits
from nanoloom.nest.granularity import TASK_ELEMENTS
from nanoloom.nest.index import Access
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.nest.task_sizes import PADDED, numbers, task_sizes
from nanoloom.schedule.language import ALL, Directive, Parallel, Schedule, StoreAt, Tile
from nanoloom.schedule.library.candidates import schedule_of
from nanoloom.schedule.library.finish_at_tile import at_tile, is_finished, lanes_at_tile
from nanoloom.schedule.library.short_rows import rows_of_tile, with_joint_rows
from nanoloom.schedule.library.vector_axis import (
    axis_of,
    innermost,
    is_alone,
    pixels_of,
    runs_across,
)
from nanoloom.schedule.library.vectors import group_of, lanes_of, vectors
from nanoloom.target.facts import WIDEST_BITS, Target

# Lanes of the widest vector: as many rows of squares have room for any.
SQUARES = WIDEST_BITS // bits("f32")


def by_rows(nest: LoopNest, last: Statement, target: Target) -> Schedule:
    """Rows in parallel, all producers computed inside, then vector loops."""
    sizes = numbers(last)
    inner = vectors(nest.stages, target)
    rows = shared_rows(nest, last, target)
    parallel = [d for d in range(rows) if not last.axes[d].is_reduction]
    if not parallel or 0 in sizes:
        return schedule_of(nest, target, (inner, "no rows to share"))
    several = len([stage for stage in nest.stages if stage.reads]) > 1
    blocks = {} if several else transposed_blocks(last, sizes, target)
    if blocks:
        reason = "an operand is turned: one task some squares of it"
        tiles = task_sizes(sizes, list(range(len(sizes))), blocks)
        words = (Parallel(last.name, tiles, ALL), *inner)
        return schedule_of(nest, target, (words, reason))
    wanted = TASK_ELEMENTS * (PADDED if nest.pads else 1)
    tiles = task_sizes(sizes, parallel, {}, row_elements(nest, rows), wanted)
    reason = "rows are independent: one task a few of them, producers fused"
    points = one_loop(nest, last, target) if several else None
    if points is not None:
        reason = "rows are independent: one task a few of them, one loop for all stages"
        words = (Parallel(last.name, tiles, ALL), *points)
        return schedule_of(nest, target, (words, reason))
    row: tuple[Tile, ...] = ()
    joint = with_joint_rows(inner, nest.stages, target)
    alone = is_alone(nest.stages)
    across = [x for x in nest.stages if runs_across(x, target, alone=alone)]
    single = {*parallel} - {axis_of(x, target, alone=alone) for x in across}
    if several and any(tiles[d] > 1 for d in single):
        count = [1 if d in single else 0 for d in range(len(sizes))]
        together = rows_of_tile(nest.stages, row_elements(nest, rows), target)
        if tiles[max(single)] < together:
            joint = None
        elif joint is not None:
            count[max(single)] = together
        row = (Tile(last.name, tuple(count), ALL),)  # temporaries stay in L1
    made = (StoreAt(pad.name, "task") for pad in nest.pads)  # not for each row's tile
    words = Parallel(last.name, tiles, ALL), *made, *row, *(joint or inner)
    return schedule_of(nest, target, (words, reason))


def one_loop(
    nest: LoopNest, last: Statement, target: Target
) -> tuple[Directive, ...] | None:
    """All stages on a vector of points, what is between them in registers.

    None where they are not at the same points, have vectors of several widths, or
    functions: exp and its kin have numbers enough of their own in registers.
    """
    working = [stage for stage in nest.stages if stage.reads]
    if any(stage.is_reduction for stage in nest.stages) or nest.pads:
        return None
    if any(stage.has_functions for stage in working):
        return None
    first, *_ = working
    if axis_of(first, target) != len(first.axes) - 1:  # a single number, for one
        return None
    along = all(read.lies_along(first.names[-1]) for read in first.reads)
    if not first.lanewise or not along or not is_finished(nest, first):
        return None
    if len({lanes_of(stage, target) for stage in nest.stages}) > 1:
        return None
    lanes = lanes_at_tile(nest, first, target)
    if lanes.scalable:
        many = group_of(nest.stages, target) * lanes_of(first, target)
        lanes = lanes_at_tile(nest, first, target, many)
    return at_tile(nest, first, last, lanes, {})


def shared_rows(nest: LoopNest, last: Statement, target: Target) -> int:
    """Leading axes that become tasks; the one that vectors run along does not."""
    rank = len(last.axes)
    working = [stage for stage in nest.stages if stage.reads] or [last]
    rows = min(rank, *(rows_of(stage) for stage in working))
    if not any(stage.is_reduction for stage in working):
        return max(rows - 1, 1 if rank == 1 else 0)
    for stage in working:
        if not stage.is_reduction or stage.is_contraction:
            continue
        inner = innermost(stage.reads)
        place = None if inner is None else stage.place(inner)
        if target.vector.any_length and pixels_of(stage) is not None:
            place = axis_of(stage, target)
        if place is not None and not stage.axes[place].is_reduction:
            rows = min(rows, place)  # a window or a column
    return rows


def row_elements(nest: LoopNest, rows: int) -> int:
    """What a row takes in the stage that does most: a sum's result is one number."""
    sharing = [s for s in nest.stages if s.reads and s.leading_parallel() >= rows]
    return max((prod(numbers(stage)[rows:]) for stage in sharing), default=1)


def rows_of(stage: Statement) -> int:
    """Leading parallel axes that the stages behind one can share with it."""
    if stage.is_contraction:
        return len([axis for axis in stage.axes if not axis.is_reduction])
    return stage.leading_parallel()


def transposed_blocks(
    last: Statement, sizes: list[int], target: Target
) -> dict[int, int]:
    """Tile sizes of the result's innermost axis and of an operand's, if another.

    {} if no operand lies along another axis, or if this is no elementwise kernel.
    """
    if last.is_reduction:
        return {}
    along = last.axes[-1].name if last.axes else ""
    for read in last.reads:
        *outer, inner = read.plain or (None,)
        if along in outer and inner is not None:
            columns = block_size(sizes[-1], block_columns(read, target))
            place = last.place(inner)
            few = transposed_rows(last, read, place, sizes, target)
            if few is not None:
                wide = max(TASK_ELEMENTS // few, block_columns(read, target))
                wide = min(sizes[-1], wide)
                return {place: min(few, sizes[place]), len(sizes) - 1: wide}
            rows = block_size(sizes[place], max(SQUARES, TASK_ELEMENTS // columns))
            more = max(columns, TASK_ELEMENTS // rows)
            return {place: rows, len(sizes) - 1: block_size(sizes[-1], more)}
    return {}


def block_columns(read: Access, target: Target) -> int:
    """Columns of a block of squares; for vectors of any length, some rounds of them."""
    wanted = TASK_ELEMENTS // SQUARES
    narrow = wanted * bits("f32") // bits(read.element)
    return max(wanted, narrow) if target.vector.any_length else wanted


def transposed_rows(
    last: Statement, read: Access, place: int, sizes: list[int], target: Target
) -> int | None:
    """Rows of the result at once, if they are few: numbers of a line of the operand.

    All of a line is used then while it is near, and the result is written in few
    places.  Those that lie whole pages apart share a set of the first-level cache: half
    a line then.  None if all fits into the second-level cache when it is written, or if
    lines of the operand share few sets.
    """
    size, line, page = bits(read.element) // 8, target.caches.line, target.caches.page
    extents = dict(zip(last.names, sizes, strict=True))
    behind = list(read.plain)[read.plain.index(last.names[-1]) + 1 :]
    apart = size * prod(extents[name] for name in behind if name is not None)
    below = size * prod(sizes[place + 1 :])
    if 4 * apart % page == 0:  # 4 sets of a first-level cache have them all, or one
        return None
    if place == len(sizes) - 2 and apart > below:  # rows of the result are short
        return line // size if sizes[-1] >= SQUARES else None
    if size * prod(sizes) < target.caches.l2:
        return None
    return line // size // (2 if below % page == 0 else 1)


def block_size(size: int, wanted: int) -> int:
    """Whole squares, all if it is not much more than wanted."""
    if size < 2 * wanted:
        return size
    wanted -= wanted % SQUARES
    even = range(wanted, 2 * wanted, SQUARES // 4)
    return next((block for block in even if size % block == 0), wanted)
