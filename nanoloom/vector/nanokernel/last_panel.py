"""Sums of a weight's last panel, which may have fewer vectors than the others.

    112 columns in panels of 64:  sums = if columns > 48: 4 vectors   else: 3

The panel is filled up with zeros, which every tile would multiply, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nanoloom.mlir import arith, ir, scf
from nanoloom.vector.access import index
from nanoloom.vector.nanokernel.fma import start_values, vector_kind
from nanoloom.vector.nanokernel.tile.tile import Tile
from nanoloom.vector.vectorize import TAIL, noted

Values = list[ir.Value]


def accumulate(tile: Tile, sums: Callable[[Tile], Values]) -> Values:
    """The sums of a tile, those of vectors that no column is in as they start."""
    few, vectors = last_vectors(tile), tile.plan.vectors
    if tile.column_count is None or few == vectors:
        return sums(tile)
    kind = vector_kind(tile)
    more = arith.cmpi(
        arith.CmpIPredicate.ugt, tile.column_count, index(few * tile.lanes)
    )
    either = scf.IfOp(more, [kind] * tile.plan.rows * vectors, has_else=True)
    with ir.InsertionPoint(either.then_block):
        scf.yield_(sums(tile))
    with ir.InsertionPoint(either.else_block):
        made = sums(replace(tile, plan=replace(tile.plan, vectors=few)))
        every = start_values(tile, kind)
        for row in range(tile.plan.rows):
            begin = row * vectors
            every[begin : begin + few] = made[row * few : (row + 1) * few]
        scf.yield_(every)
    return list(either.results)


def last_vectors(tile: Tile) -> int:
    """Of the last of several panels, as `Tail` says."""
    return (noted(tile.op, TAIL) or (tile.plan.vectors,))[0]
