"""The loops of a tile's sums: one a reduced dimension, accumulators through all.

What these begin with is what the result holds, or the number of a fill.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nanoloom.ir.access import add, index, multiply
from nanoloom.ir.linalg_query import maps
from nanoloom.ir.mlir import arith, ir, vector
from nanoloom.vector.emit_loops import emit_loop
from nanoloom.vector.guard import Bounds
from nanoloom.vector.nanokernel.tile.tile import (
    Tile,
    initial_number,
    place_of,
    read_vector,
)
from nanoloom.vector.tile_points import with_value

# A step of the sums at loop variables; the loop of a dimension's steps: its extent,
# steps of a round, the dimension, loop variables, sums, what a step does.
Step = Callable[[list[ir.Value], list[ir.Value]], list[ir.Value]]
Extent = int | ir.Value  # a number, or one that is known at run time
NO_LIMITS: Mapping[int, Bounds] = {}
FEW = 4  # steps that are no loop
Innermost = Callable[
    [Extent, int, int, list[ir.Value], list[ir.Value], Step], list[ir.Value]
]


def nest(
    tile: Tile,
    dims: Sequence[int],
    ivs: list[ir.Value],
    sums: list[ir.Value],
    step: Step,
    innermost: Innermost,
    together: int = 1,
    limits: Mapping[int, Bounds] = NO_LIMITS,
) -> list[ir.Value]:
    """One loop a reduced dimension, the accumulators carried through all of them.

    together: numbers of the last one in a step.  Where that is all of them, a few steps
    of the loop around it are no loop.  limits: of dimensions of which some steps are
    left out.
    """
    if not dims:
        return step(ivs, sums)
    dim, *inner = dims
    extent = tile.extent(dim)

    def inside(place: ir.Value, now: list[ir.Value]) -> list[ir.Value]:
        here = with_value(ivs, dim, place)
        return nest(tile, inner, here, now, step, innermost, together, limits)

    if dim in limits:
        begin, end = limits[dim]
        return emit_loop((begin, end), 1, sums, inside)
    if not inner:
        return innermost(extent, tile.plan.unroll, dim, ivs, sums, step)
    if extent == 1:
        return inside(index(0), sums)
    last = tile.extent(inner[0])
    single = len(inner) == 1 and isinstance(last, int) and last <= together
    if single and isinstance(extent, int) and extent <= FEW:
        for number in range(extent):
            sums = inside(index(number), sums)
        return sums
    return emit_loop((0, extent), 1, sums, inside)


def unrolled(
    extent: Extent,
    steps: int,
    dim: int,
    ivs: list[ir.Value],
    sums: list[ir.Value],
    step: Step,
) -> list[ir.Value]:
    """The innermost reduction: so many steps a round, then the steps that are left."""

    def one(place: ir.Value, now: list[ir.Value]) -> list[ir.Value]:
        return step(with_value(ivs, dim, place), now)

    def rounds(place: ir.Value, now: list[ir.Value]) -> list[ir.Value]:
        for ahead in range(steps):
            now = one(add(place, index(ahead)), now)
        return now

    if isinstance(extent, ir.Value):
        whole_rounds = multiply(arith.divui(extent, index(steps)), index(steps))
        sums = emit_loop((0, whole_rounds), steps, sums, rounds)
        return emit_loop((whole_rounds, extent), 1, sums, one)
    whole = extent // steps * steps if extent > steps else 0
    if whole:
        sums = emit_loop((0, whole), steps, sums, rounds)
    for place in range(whole, extent):
        sums = one(index(place), sums)
    return sums


def vector_kind(tile: Tile) -> ir.VectorType:
    """Of the sums."""
    element = ir.RankedTensorType(tile.op.operation.operands[2].type).element_type
    return ir.VectorType.get([tile.lanes], element)


def start_values(tile: Tile, kind: ir.VectorType) -> list[ir.Value]:
    """The accumulators before the first step."""
    result = tile.op.operation.operands[2]
    number = initial_number(result)
    if number is not None:
        count = tile.plan.rows * tile.plan.vectors
        return [vector.broadcast(kind, number)] * count
    out = maps(tile.op)[2]
    values: list[ir.Value] = []
    for r in range(tile.plan.rows):
        for v in range(tile.plan.vectors):
            ivs = tile.ivs(tile.row_index(r), index(v * tile.lanes))
            at = place_of(out, ivs)
            values.append(read_vector(result, at, tile.lanes, tile.mask(r, v)))
    return values
