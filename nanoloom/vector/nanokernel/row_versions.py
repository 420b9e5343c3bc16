"""Sums of tiles that may have few rows: versions for a row, two, four, ... and all.

A kernel whose number of rows is known at run time may be called for one row, and its
last tile has any number of them, as has the last one of each row of an image.  Rows
that are not there would be computed, too:

    sums = if rows > 4: all 6   elif rows > 2: 4   elif rows > 1: 2   else: 1

Of an operand that is guarded those are the tiles at its end (guarded_sums.py).
"""

from __future__ import annotations

from dataclasses import replace

from nanoloom.mlir import arith, ir, scf
from nanoloom.schedule.families import FMA_FAMILY
from nanoloom.target.facts import Target
from nanoloom.vector.access import index
from nanoloom.vector.nanokernel import families
from nanoloom.vector.nanokernel.balanced_tiles import balance_tiles
from nanoloom.vector.nanokernel.fma import start_values, vector_kind
from nanoloom.vector.nanokernel.guarded_sums import by_ends, unknown_end
from nanoloom.vector.nanokernel.tile.tile import Tile, tile_of

VERSIONS = (12, 10, 8, 7, 6, 5, 4, 2, 1)
SAVED = 0.9  # of the rows of the next larger version, at most


def accumulate(tile: Tile, target: Target) -> list[ir.Value]:
    """Emit the loops of a tile; gives rows * vectors sums, also those of no rows."""
    rows = tile.plan.rows
    fewer = fewer_rows(rows) if has_versions(tile) else []
    return by_ends(
        tile,
        lambda whole: families.accumulate(whole, target),
        lambda few: versions(few, target, rows, fewer),
    )


def has_versions(tile: Tile) -> bool:
    """Whether a tile may have few rows, of multiply-adds alone, as only a run knows."""
    plain = tile.plan.family == FMA_FAMILY.name and not tile.plan.copy_rhs
    return plain and tile.sized and tile.row_count is not None


def balanced(tile: Tile) -> Tile:
    """A tile whose loop goes in even steps now, but where tiles have to be whole."""
    if not has_versions(tile) or unknown_end(tile) is not None:
        return tile
    balance_tiles(tile.op, tile.plan.rows)
    return tile_of(tile.op, tile.shape, tile.plan, tile.fetched)


def fewer_rows(rows: int) -> list[int]:
    """Of the versions that a tile of so many rows has beside its own."""
    kept = [rows]
    for few in VERSIONS:
        if few <= SAVED * kept[-1]:
            kept.append(few)
    return kept[1:]


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
