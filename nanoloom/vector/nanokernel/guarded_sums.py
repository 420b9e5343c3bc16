"""Sums of a tile whose left operand is guarded (operands/guarded_lhs.py).

Reference loop, x the rows of the tile, z the fill:

    for k of the sum: for r in rows: acc[r] += pad[y + k, s (x + r) + l] * w[k, l]
      ->  acc = sum of z * w[k, l] over the k that are outside for all rows
          for the other k:  the same of what is within, at the ends of a row guarded

What is outside for all rows is added up once, and where it is zero not at all.  Tiles
are a prologue, a steady state that asks nothing, and an epilogue: those at an end of a
row have code of their own, in which the rows that leave it ask at each step.  Where
only a run knows which tiles those are, each asks: there is code for those within, for
the first one and the last, and for others, which may have fewer rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TypeAlias

from nanoloom.ir.access import add, as_index, constant_of, index, multiply
from nanoloom.ir.mlir import arith, ir
from nanoloom.nest.guard import MOST_ENDS, Guard, Partition
from nanoloom.vector.emit_loops import emit_branch, emit_loop
from nanoloom.vector.guard import Bounds, Ends, GuardedDim
from nanoloom.vector.index_multiples import multiple
from nanoloom.vector.nanokernel.operands.guarded_lhs import (
    Fill,
    GuardedLhs,
    GuardedRead,
)
from nanoloom.vector.nanokernel.reduction_loops import vector_kind
from nanoloom.vector.nanokernel.tile.tile import Tile
from nanoloom.vector.tile_points import with_value
from nanoloom.vector.widths import filled

Values: TypeAlias = list[ir.Value]
# The loops over some dimensions: from loop variables and sums on, within bounds.
Through: TypeAlias = Callable[
    [Sequence[int], Values, Values, Mapping[int, Bounds]], Values
]
# Those of a family, whose left operand is read so, of these rows of the tile.
Family: TypeAlias = Callable[[GuardedRead | Fill, Values], Through]
NO_LIMITS: Mapping[int, Bounds] = {}
SAME, LESS = arith.CmpIPredicate.eq, arith.CmpIPredicate.slt


def accumulate(
    tile: Tile, lhs: GuardedLhs, family: Family, start: Values, *, adds: bool
) -> Values:
    """Emit the loops over the reduced dimensions; gives rows * vectors accumulators.

    adds: whether the fill does to a sum.
    """
    shape, limits, ivs = tile.shape, lhs.limits, tile.ivs(index(0), index(0))
    if adds:
        more = fill_sums(tile, lhs, limits, family)
        floats = isinstance(vector_kind(tile).element_type, ir.FloatType)
        plus = arith.addf if floats else arith.addi
        start = [plus(x, more[n % len(more)]) for n, x in enumerate(start)]
    along = lhs.along

    def sums(read: GuardedRead, rows: Values) -> Values:
        through = family(read, rows)
        if read.begin is None or along is None or not lhs.in_groups:
            return through(shape.reduced, ivs, start, limits)
        # Where a group begins is known: steps that go along rows, too, are no loop.
        apart = [d for d in along.steps if d != shape.reduced[-1]]
        others, now = [d for d in shape.reduced if d not in apart], start
        for number in range(prod(shape.extents[d] for d in apart)):
            here = [index(number) if d in apart else x for d, x in enumerate(ivs)]
            now = through(others, here, now, limits)
        return now

    return by_place(tile, lhs, sums)


def fill_sums(
    tile: Tile, lhs: GuardedLhs, limits: Mapping[int, Bounds], family: Family
) -> Values:
    """What steps that are outside for all rows add to each of them: its vectors."""
    shape, kind = tile.shape, vector_kind(tile)
    all_of = family(Fill(lhs), [index(0)])

    def through(dims: Sequence[int], ivs: Values, sums: Values) -> Values:
        if not limits.keys() & {*dims}:
            return sums
        (dim, *inner), extent = dims, shape.extents[dims[0]]
        begin, end = limits.get(dim, (index(0), index(extent)))

        def outside(place: ir.Value, now: Values) -> Values:
            return all_of(inner, with_value(ivs, dim, place), now, NO_LIMITS)

        def inside(place: ir.Value, now: Values) -> Values:
            return through(inner, with_value(ivs, dim, place), now)

        sums = emit_loop((0, begin), 1, sums, outside)
        sums = emit_loop((begin, end), 1, sums, inside)
        return emit_loop((end, extent), 1, sums, outside)

    zero = filled(kind, 0)
    start = tile.ivs(index(0), index(0))
    return through(shape.reduced, start, [zero] * tile.plan.vectors)


# ---- prologue, steady state and epilogue ---------------------------------------------

# Where a tile has code of its own, and what that computes.
Version: TypeAlias = tuple[Callable[[], ir.Value], Callable[[], Values]]


def by_place(
    tile: Tile, lhs: GuardedLhs, sums: Callable[[GuardedRead, Values], Values]
) -> Values:
    """The sums of a tile by where in a row it is, of known rows of it."""

    def within() -> Values:
        return sums(lhs.at(None), tile.row_indices)

    along = lhs.along
    if along is None or not tile.ends:
        return within()
    known = known_ends(tile, lhs, along)
    if known is None:
        begin = 0 if tile.ends is Ends.FRONT else as_index(along.begin)
        return sums(lhs.at(begin), tile.row_indices)

    def version(begin: int) -> Version:
        def here() -> ir.Value:
            return arith.cmpi(SAME, as_index(along.begin), index(begin))

        def at_end() -> Values:
            last = lhs.count - begin // along.row_step - 1  # for those behind it
            rows = [index(min(r, last)) for r in range(tile.plan.rows)]
            return sums(lhs.at(begin), rows)

        return here, at_end

    every, ends = known
    ways = [version(begin) for begin in ends]
    *_, steady = ways.pop() if len(ends) == len(every) else (within,)
    return first_of(tile, ways, steady)


def by_ends(
    tile: Tile, sums: Callable[[Tile], Values], few: Callable[[Tile], Values]
) -> Values:
    """The sums of a tile by where in a row it is, where only a run knows.

    sums: of a tile at an end that is known.  few: of any.
    """
    along = unknown_end(tile)
    if along is None:
        return few(tile)

    def version(placed: Tile, here: ir.Value) -> Version:
        return lambda: here, lambda: sums(placed)

    ways = [version(*each) for each in places_of(tile, along)]
    return first_of(tile, ways, lambda: few(tile))


def first_of(
    tile: Tile, ways: Sequence[Version], otherwise: Callable[[], Values]
) -> Values:
    """What the first version gives that holds, as only a run knows."""
    if not ways:
        return otherwise()
    (here, sums), *rest = ways
    kinds: list[ir.Type] = [vector_kind(tile)] * tile.plan.rows * tile.plan.vectors
    return emit_branch(here(), sums, lambda: first_of(tile, rest, otherwise), kinds)


def unknown_end(tile: Tile) -> GuardedDim | None:
    """What is guarded along a tile's rows, where only a run knows which tiles are at
    its ends."""
    lhs = GuardedLhs.of(tile)
    along = None if lhs is None else lhs.along
    if lhs is None or along is None or known_ends(tile, lhs, along) is not None:
        return None
    return along


def places_of(tile: Tile, along: GuardedDim) -> list[tuple[Tile, ir.Value]]:
    """A tile at the places where it may be, and whether it is there.

    Whole, but within what is of known size.
    """
    whole = replace(tile, row_count=None)
    within = whole if tile.sized else tile
    rows_end = multiply(within.row_index(tile.plan.rows - 1), index(along.row_step))
    begin = as_index(along.begin)
    reached = add(add(begin, rows_end), index(along.reach))
    before = arith.cmpi(LESS, reached, along.end)
    behind = arith.cmpi(arith.CmpIPredicate.sge, begin, index(along.low))
    first = arith.andi(before, arith.cmpi(SAME, begin, index(0)))
    inside, last = arith.andi(before, behind), behind
    if tile.row_count is not None:
        full = arith.cmpi(SAME, tile.row_count, index(tile.plan.rows))
        first, last = arith.andi(first, full), arith.andi(last, full)
        inside = arith.andi(inside, full) if tile.sized else inside
    found = [(replace(within, ends=Ends.NEITHER), inside)]
    if along.low:
        found.append((replace(whole, ends=Ends.FRONT), first))
    if along.high:
        found.append((replace(whole, ends=Ends.BEHIND), last))
    return found


def known_ends(
    tile: Tile, lhs: GuardedLhs, along: GuardedDim
) -> tuple[list[int], list[int]] | None:
    """Where tiles begin in a padded row; and of those at its ends.

    None where only a run knows, or more are at ends than have code of their own.
    """
    if not isinstance(along.size, int) or (tile.sized and tile.row_count is not None):
        return None
    count, size = lhs.count, tile.plan.rows
    begin = along.begin if isinstance(along.begin, int) else constant_of(along.begin)
    apart = size * along.row_step
    if begin is None and multiple(as_index(along.begin)) % apart:
        return None
    guard = Guard(-along.low, along.row_step, along.size, along.reach)
    if begin is None:
        tiles = Partition.of(guard.steps(count), count, size)
        every = [at * along.row_step for at in range(0, count, size)]
        found = [at * along.row_step for at in tiles.ends]
    else:
        rows = min(size, count - begin // along.row_step)
        inside = replace(guard, begin=begin - along.low).steps(rows)
        every = [begin]
        found = [] if len(inside) == rows else every
    return (every, found) if len(found) <= MOST_ENDS else None
