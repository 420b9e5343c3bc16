"""Sums of tiles that may have few rows: versions for a row, two, four, ... and all.

A kernel whose number of rows is known at run time may be called for one row, and its
last tile has any number of them, as has the last one of each row of an image.  Rows
that are not there would be computed, too:

    sums = if rows > 4: all 6   elif rows > 2: 4   elif rows > 1: 2   else: 1
"""

from __future__ import annotations

from dataclasses import replace

from nanoloom.kernels.structure import Op
from nanoloom.mlir import arith, ir, scf
from nanoloom.schedule.families import FMA_FAMILY
from nanoloom.schedule.language import Nanokernel
from nanoloom.sizes.lift import ARGUMENT
from nanoloom.target.facts import Target
from nanoloom.vector.access import function_around, index
from nanoloom.vector.nanokernel import families
from nanoloom.vector.nanokernel.fma import start_values, vector_kind
from nanoloom.vector.nanokernel.tile.tile import Tile

VERSIONS = (12, 10, 8, 7, 6, 5, 4, 2, 1)
SAVED = 0.9  # of the rows of the next larger version, at most


def accumulate(tile: Tile, target: Target) -> list[ir.Value]:
    """Emit the loops of a tile; gives rows * vectors sums, also those of no rows."""
    if tile.row_count is None or not has_versions(tile.op, tile.plan):
        return families.accumulate(tile, target)
    return versions(tile, target, tile.plan.rows, fewer_rows(tile.plan.rows))


def has_versions(op: Op, plan: Nanokernel) -> bool:
    """Whether a kernel is called for any size, with tiles of multiply-adds alone."""
    sized = ARGUMENT in function_around(op).attributes
    return sized and plan.family == FMA_FAMILY.name and not plan.copied


def fewer_rows(rows: int) -> list[int]:
    """Of the versions that a tile of so many rows has beside its own."""
    kept = [rows]
    for few in VERSIONS:
        if few <= SAVED * kept[-1]:
            kept.append(few)
    return kept[1:]


def versions(tile: Tile, target: Target, rows: int, fewer: list[int]) -> list[ir.Value]:
    """The sums of a tile of at most so many rows."""
    count, kind = tile.row_count, vector_kind(tile)
    assert count is not None
    if not fewer:
        return some_rows(replace(tile, all_rows=rows == 1), target, rows)
    more = arith.cmpi(arith.CmpIPredicate.ugt, count, index(fewer[0]))
    sums = tile.plan.rows * tile.plan.vectors
    either = scf.IfOp(more, [kind] * sums, has_else=True)
    with ir.InsertionPoint(either.then_block):
        exact = replace(tile, all_rows=fewer[0] == rows - 1)
        scf.yield_(some_rows(exact, target, rows))
    with ir.InsertionPoint(either.else_block):
        scf.yield_(versions(tile, target, fewer[0], fewer[1:]))
    return list(either.results)


def some_rows(tile: Tile, target: Target, rows: int) -> list[ir.Value]:
    """The sums of the first rows, and what the others start from."""
    if rows == tile.plan.rows:
        return families.accumulate(tile, target)
    first = replace(tile, plan=replace(tile.plan, rows=rows))
    sums = families.accumulate(first, target)
    rest = start_values(tile, vector_kind(tile))[len(sums) :]
    return [*sums, *rest]
