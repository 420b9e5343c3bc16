"""Kernels without a nanokernel: rows in parallel, then vector loops."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from nanoloom.nest.contraction import bits
from nanoloom.nest.granularity import JAMMED, TASK_ELEMENTS
from nanoloom.nest.index import Access
from nanoloom.nest.nest import LoopNest
from nanoloom.nest.statement import Statement
from nanoloom.nest.task_sizes import PADDED, numbers, task_sizes
from nanoloom.schedule.language import ALL, Directive, Parallel, Schedule, StoreAt, Tile
from nanoloom.schedule.library.candidates import schedule_of
from nanoloom.schedule.library.finish_at_tile import at_tile, is_finished, lanes_at_tile
from nanoloom.schedule.library.short_rows import short_rows, with_short_rows
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
    short = short_rows(nest.stages, target)
    wide = row_elements(nest, rows)
    row = row_tile(nest, parallel, wide, target, short is not None)
    row = {d: min(count, tiles[d]) for d, count in row.items()} if several else {}
    if short is not None:
        together = row[max(row)] if row else JAMMED
        inner = with_short_rows(inner, nest, short, together)
    tile = tuple(row.get(d, 0) for d in range(len(sizes)))
    within = any(tiles[d] > row[d] for d in row)
    inside = (Tile(last.name, tile, ALL),) if within else ()
    made = (StoreAt(pad.name, "task") for pad in nest.pads)  # not for each row's tile
    words = Parallel(last.name, tiles, ALL), *made, *inside, *inner
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


def row_tile(
    nest: LoopNest, parallel: list[int], row: int, target: Target, joint: bool
) -> dict[int, int]:
    """What all stages compute before the next such tile, whose temporaries then stay in
    the first-level cache, by axis: a row, or some that are combined together.

    row: numbers of a row.  Of a single axis, a part of it.
    """
    alone, stages = is_alone(nest.stages), nest.stages
    if max(len(stage.axes) for stage in stages) == 1:
        return {0: rows_in_cache(stages, 1, target)}
    across = [x for x in stages if runs_across(x, target, alone=alone)]
    single = {*parallel} - {axis_of(x, target, alone=alone) for x in across}
    made = dict.fromkeys(sorted(single), 1)
    if made and joint:
        lanes = target.vector.bits // bits("f32")
        made[max(made)] = max(JAMMED, min(lanes, rows_in_cache(stages, row, target)))
    return made


def rows_in_cache(stages: Sequence[Statement], row: int, target: Target) -> int:
    """Rows, a power of two, of which half of the first-level cache holds as many
    numbers of each stage."""
    size = max(bits(x.element) for stage in stages for x in stage.writes) // 8
    fit = target.caches.l1d // (2 * row * size * len(stages))
    return 1 << max(0, fit.bit_length() - 1)


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
    a line then.  None if lines of the operand share few sets, or where the result does
    not and fits into the second-level cache when it is written.
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
    if below % page == 0:
        return line // size // 2
    return line // size if size * prod(sizes) >= target.caches.l2 else None


def block_size(size: int, wanted: int) -> int:
    """Whole squares, all if it is not much more than wanted."""
    if size < 2 * wanted:
        return size
    wanted -= wanted % SQUARES
    even = range(wanted, 2 * wanted, SQUARES // 4)
    return next((block for block in even if size % block == 0), wanted)
