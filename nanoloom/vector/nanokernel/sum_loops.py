"""The loops of a tile's sums: one a reduced dimension, accumulators through all."""

from __future__ import annotations

from collections.abc import Callable

from nanoloom.mlir import ir, scf
from nanoloom.vector.access import add, index
from nanoloom.vector.nanokernel.tile.tile import Tile

# A step of the sums at loop variables; the loop of a dimension's steps: its extent,
# steps of a round, the dimension, loop variables, sums, what a step does.
Step = Callable[[list[ir.Value], list[ir.Value]], list[ir.Value]]
Innermost = Callable[
    [int, int, int, list[ir.Value], list[ir.Value], Step], list[ir.Value]
]


def nest(
    tile: Tile,
    dims: list[int],
    ivs: list[ir.Value],
    sums: list[ir.Value],
    step: Step,
    innermost: Innermost,
) -> list[ir.Value]:
    """One loop a reduced dimension, the accumulators carried through all of them."""
    extent = tile.shape.extents[dims[0]]
    if len(dims) == 1:
        return innermost(extent, tile.plan.unroll, dims[0], ivs, sums, step)
    if extent == 1:
        return nest(tile, dims[1:], ivs, sums, step, innermost)

    def inside(place: ir.Value, now: list[ir.Value]) -> list[ir.Value]:
        here = with_value(ivs, dims[0], place)
        return nest(tile, dims[1:], here, now, step, innermost)

    return counted(extent, 1, sums, inside)


def unrolled(
    extent: int,
    steps: int,
    dim: int,
    ivs: list[ir.Value],
    sums: list[ir.Value],
    step: Step,
) -> list[ir.Value]:
    """The innermost reduction: so many steps a round, then the steps that are left."""
    whole = extent // steps * steps if extent > steps else 0

    def rounds(place: ir.Value, now: list[ir.Value]) -> list[ir.Value]:
        for ahead in range(steps):
            now = step(with_value(ivs, dim, add(place, index(ahead))), now)
        return now

    if whole:
        sums = counted(whole, steps, sums, rounds)
    for place in range(whole, extent):
        sums = step(with_value(ivs, dim, index(place)), sums)
    return sums


def counted(
    extent: int,
    steps: int,
    sums: list[ir.Value],
    inside: Callable[[ir.Value, list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """A loop that carries the accumulators."""
    loop = scf.ForOp(index(0), index(extent), index(steps), sums)
    with ir.InsertionPoint(loop.body):
        scf.yield_(inside(loop.induction_variable, list(loop.inner_iter_args)))
    return list(loop.results)


def with_value(ivs: list[ir.Value], dim: int, value: ir.Value) -> list[ir.Value]:
    """The loop variables with one of them at a value."""
    return [*ivs[:dim], value, *ivs[dim + 1 :]]
