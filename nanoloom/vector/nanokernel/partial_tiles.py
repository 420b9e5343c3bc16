"""Tiles that may not be full: versions for few rows, and for few vectors of columns.

    sums = if rows > 4: all 6   elif rows > 2: 4   elif rows > 1: 2   else: 1
    sums = if columns > 48: 4 vectors   else: 3

What `Versions` and `Tail` say of a nanokernel.  The last tile of a kernel whose number
of rows is known at run time has any number of them, that of each row of an image has
one; the last panel of a weight is filled up with zeros.  Without a version all rows are
computed, and all columns.  Of an operand that is guarded versions of rows are
for the tiles at its end (guarded_sums.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nanoloom.errors import Error
from nanoloom.ir.access import index
from nanoloom.ir.mlir import arith, ir
from nanoloom.schedule.families import FMA_FAMILY
from nanoloom.target.facts import Target
from nanoloom.vector.emit_loops import emit_branch
from nanoloom.vector.nanokernel import families
from nanoloom.vector.nanokernel.balanced_tiles import balance_tiles
from nanoloom.vector.nanokernel.guarded_sums import by_ends, unknown_end
from nanoloom.vector.nanokernel.reduction_loops import vector_kind
from nanoloom.vector.nanokernel.tile.tile import Tile, tile_of
from nanoloom.vector.vectorize import BALANCE, TAIL, VERSIONS, noted
from nanoloom.vector.widths import filled

Values = list[ir.Value]


def balanced(tile: Tile) -> Tile:
    """A tile whose loop goes in even steps now, if `Balance` is said of it."""
    if BALANCE not in tile.op.operation.attributes:
        return tile
    whole = unknown_end(tile) is not None
    if whole or tile.plan.family != FMA_FAMILY.name or tile.plan.copy_rhs:
        raise Error("tiles have to be whole: no even steps go over them")
    if not balance_tiles(tile.op, tile.plan.rows):
        raise Error("no loop goes over tiles of rows to a number that is not known")
    return tile_of(tile.op, tile.shape, tile.plan, tile.fetched)


def accumulate(tile: Tile, target: Target) -> Values:
    """Emit the loops of a tile; gives rows * vectors sums, also those of no rows."""
    rows, fewer = tile.plan.rows, list(noted(tile.op, VERSIONS))
    if fewer:
        families.copy_rows(tile, target)
    return by_ends(
        tile,
        lambda whole: of_columns(whole, target),
        lambda few: of_rows(few, target, rows, fewer),
    )


def of_rows(tile: Tile, target: Target, rows: int, fewer: list[int]) -> Values:
    """The sums of a tile of at most so many rows."""
    if not fewer:
        return first_rows(tile, target, rows)
    count = tile.row_count
    assert count is not None, "a tile with versions may have few rows"
    larger = replace(tile, fewest=fewer[0] + 1)
    return either(
        tile,
        count,
        fewer[0],
        lambda: first_rows(larger, target, rows),
        lambda: of_rows(tile, target, fewer[0], fewer[1:]),
    )


def first_rows(tile: Tile, target: Target, rows: int) -> Values:
    """The sums of the first rows, and as many more as the full tile has."""
    if rows == tile.plan.rows:
        return of_columns(tile, target)
    first = replace(tile, plan=replace(tile.plan, rows=rows))
    sums = of_columns(first, target)
    return [*sums, *not_stored(tile)[len(sums) :]]


def not_stored(tile: Tile) -> Values:
    """In place of sums of rows and columns that are not inside."""
    zero = filled(vector_kind(tile), 0)
    return [zero] * (tile.plan.rows * tile.plan.vectors)


def of_columns(tile: Tile, target: Target) -> Values:
    """The sums of a tile, none of vectors that no column is in."""
    vectors, said = tile.plan.vectors, noted(tile.op, TAIL)
    if not said or tile.column_count is None:
        return families.accumulate(tile, target)
    (few,) = said

    def smaller() -> Values:
        made = families.accumulate(
            replace(tile, plan=replace(tile.plan, vectors=few)), target
        )
        every = not_stored(tile)
        for row in range(tile.plan.rows):
            begin = row * vectors
            every[begin : begin + few] = made[row * few : (row + 1) * few]
        return every

    def full() -> Values:
        return families.accumulate(tile, target)

    return either(tile, tile.column_count, few * tile.lanes, full, smaller)


def either(
    tile: Tile,
    count: ir.Value,
    most: int,
    more: Callable[[], Values],
    fewer: Callable[[], Values],
) -> Values:
    """The sums of a tile that has more rows or columns than so many, or of another."""
    kinds: list[ir.Type] = [vector_kind(tile)] * tile.plan.rows * tile.plan.vectors
    above = arith.cmpi(arith.CmpIPredicate.ugt, count, index(most))
    return emit_branch(above, more, fewer, kinds)
