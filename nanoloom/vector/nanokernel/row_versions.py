"""Sums of tiles that may have few rows: versions for a row, two, four, ... and all.

What `Versions` and `Balance` say of a nanokernel.  A kernel whose number of rows is
known at run time may be called for one row, and its last tile has any number of them,
as has the last one of each row of an image.  Without versions rows that are not there
are computed, too:

    sums = if rows > 4: all 6   elif rows > 2: 4   elif rows > 1: 2   else: 1

Of an operand that is guarded those are the tiles at its end (guarded_sums.py).
"""

from __future__ import annotations

from dataclasses import replace

from nanoloom.errors import Error
from nanoloom.mlir import arith, ir, scf
from nanoloom.schedule.families import FMA_FAMILY
from nanoloom.target.facts import Target
from nanoloom.vector.access import index
from nanoloom.vector.nanokernel import families
from nanoloom.vector.nanokernel.balanced_tiles import balance_tiles
from nanoloom.vector.nanokernel.fma import start_values, vector_kind
from nanoloom.vector.nanokernel.guarded_sums import by_ends, unknown_end
from nanoloom.vector.nanokernel.tile.tile import Tile, tile_of
from nanoloom.vector.vectorize import BALANCE, VERSIONS, noted


def accumulate(tile: Tile, target: Target) -> list[ir.Value]:
    """Emit the loops of a tile; gives rows * vectors sums, also those of no rows."""
    rows, fewer = tile.plan.rows, list(noted(tile.op, VERSIONS))
    return by_ends(
        tile,
        lambda whole: families.accumulate(whole, target),
        lambda few: versions(few, target, rows, fewer),
    )


def balanced(tile: Tile) -> Tile:
    """A tile whose loop goes in even steps now, if that is said of it."""
    if BALANCE not in tile.op.operation.attributes:
        return tile
    whole = unknown_end(tile) is not None
    if whole or tile.plan.family != FMA_FAMILY.name or tile.plan.copy_rhs:
        raise Error("tiles have to be whole: no even steps go over them")
    if not balance_tiles(tile.op, tile.plan.rows):
        raise Error("no loop goes over tiles of rows to a number that is not known")
    return tile_of(tile.op, tile.shape, tile.plan, tile.fetched)


def versions(tile: Tile, target: Target, rows: int, fewer: list[int]) -> list[ir.Value]:
    """The sums of a tile of at most so many rows."""
    if not fewer:
        return partial_rows(tile, target, rows)
    count, kind = tile.row_count, vector_kind(tile)
    assert count is not None
    larger = replace(tile, fewest=fewer[0] + 1)
    more = arith.cmpi(arith.CmpIPredicate.ugt, count, index(fewer[0]))
    sums = tile.plan.rows * tile.plan.vectors
    either = scf.IfOp(more, [kind] * sums, has_else=True)
    with ir.InsertionPoint(either.then_block):
        scf.yield_(partial_rows(larger, target, rows))
    with ir.InsertionPoint(either.else_block):
        scf.yield_(versions(tile, target, fewer[0], fewer[1:]))
    return list(either.results)


def partial_rows(tile: Tile, target: Target, rows: int) -> list[ir.Value]:
    """The sums of the first rows, and what the others start from."""
    if rows == tile.plan.rows:
        return families.accumulate(tile, target)
    first = replace(tile, plan=replace(tile.plan, rows=rows))
    sums = families.accumulate(first, target)
    rest = start_values(tile, vector_kind(tile))[len(sums) :]
    return [*sums, *rest]
