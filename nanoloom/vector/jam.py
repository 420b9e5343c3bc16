"""Several points of a parallel dimension at once, around one vector dimension.

    for i in 0..n by count: for vectors: f(i, ...); ...; f(i + count - 1, ...)

What is left of the dimension is one block of fewer points where its extent is known,
else single points.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nanoloom.mlir import ir, scf
from nanoloom.vector.access import index
from nanoloom.vector.extents import constant_index, is_same, rounded_down

if TYPE_CHECKING:
    from nanoloom.vector.loops import Loops


def jammed(loops: Loops, ivs: list[ir.Value]) -> None:
    """All points of the dimension, vectors of the other one inside."""
    axis, count = loops.jam
    extent = loops.extent(axis)
    known = constant_index(extent)
    if known is not None and known <= count:
        if known:
            replace(loops, jam=(axis, known)).strips(ivs)
        return
    whole = rounded_down(extent, count)
    blocks(loops, ivs, (index(0), whole), count)
    if is_same(whole, extent):
        return
    rest = 1 if known is None else known % count
    blocks(loops, ivs, (whole, extent), rest)


def blocks(
    loops: Loops, ivs: list[ir.Value], bounds: tuple[ir.Value, ir.Value], count: int
) -> None:
    """Blocks of so many points, between bounds."""
    axis = loops.jam[0]
    loop = scf.ForOp(*bounds, index(count))
    with ir.InsertionPoint(loop.body):
        here = [*ivs[:axis], loop.induction_variable, *ivs[axis + 1 :]]
        replace(loops, jam=(axis, count)).strips(here)
        scf.yield_([])
