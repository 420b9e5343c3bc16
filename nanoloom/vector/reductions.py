"""Reductions along the vector dimension: lanes and accumulators folded at the end.

Several vectors of partial results are carried through the loop, because one alone would
wait for its own latency at every step.  They are combined in a fixed order, so that the
result depends on the shape only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nanoloom.ir.access import Operand, add, as_index, index
from nanoloom.ir.mlir import arith, ir, memref, vector
from nanoloom.nest.extent import ONE
from nanoloom.nest.granularity import JAMMED
from nanoloom.target.tail_forms import MASKING, SCALAR_REMAINDER, VECTOR_LENGTH
from nanoloom.vector.combiner import PACKED, Combiner
from nanoloom.vector.emit_loops import emit_loop
from nanoloom.vector.extents import is_same, rounded_down
from nanoloom.vector.joint_lane_reduction import (
    joint_reduction,
    lie_side_by_side,
    reduced_jointly,
)
from nanoloom.vector.masked_iterations import Masks, by_lengths, rest_lanes, under_masks
from nanoloom.vector.software_pipelining import Round, iterations, of_points
from nanoloom.vector.tile_loops import side_by_side
from nanoloom.vector.tile_points import Point
from nanoloom.vector.value_cache import ValueCache
from nanoloom.vector.widths import elements, vector_type

if TYPE_CHECKING:
    from nanoloom.vector.vectorize_loops import Loops


def reduce_along(loops: Loops, ivs: Sequence[ir.Value]) -> None:
    """Outputs are single elements; lanes and accumulators are folded at the end."""
    points = loops.points(ivs)
    combiners = loops.combiners * len(points)
    others = [d for d in loops.reduced if d != loops.dim]
    start = neutral(loops) * len(points) * loops.chains

    def step(
        here: list[Point], values: list[ir.Value], once: ValueCache
    ) -> list[ir.Value]:
        return reduce_strip(loops, here, values, once)

    totals = loops.accumulate(others, points, start, step, ValueCache())
    places = [(x, point) for point in points for x in loops.outputs]
    sums: list[ir.Value] = []
    for number, c in enumerate(combiners):
        chains = totals[number :: len(places)]
        while len(chains) > 1:
            pairs = zip(chains[::2], chains[1::2], strict=True)
            chains = [c.apply(one, other) for one, other in pairs]
        sums += chains
    together = joint_reduction(loops)
    if together > 1:
        store_together(loops, points, sums, together)
        return
    for lanes, c, (x, point) in zip(sums, combiners, places, strict=True):
        start = loops.starts[loops.outputs.index(x)]
        store_result(c, x, start, point, alone(loops, c, lanes))


def store_result(
    c: Combiner, x: Operand, start: ir.Value | None, point: Point, sum_: ir.Value
) -> None:
    at = x.indices(point.ivs)
    before = memref.load(x.buffer, at) if start is None else start
    memref.store(c.apply(before, sum_), x.buffer, at)


def alone(loops: Loops, c: Combiner, lanes: ir.Value) -> ir.Value:
    """All lanes of a vector combined.

    Of a single chain in the order of those that are reduced together: a row's number
    does not depend on the rows beside it.
    """
    joint = loops.joint if loops.joint > 1 or loops.chains > 1 else JAMMED
    fits = not loops.lanes.scalable and 1 < joint <= loops.lanes.count
    if not fits or c.operation == PACKED:
        return c.across(lanes)
    return vector.extract(reduced_jointly(c, [lanes] * joint), [], [0])


def store_together(
    loops: Loops, points: list[Point], sums: list[ir.Value], count: int
) -> None:
    """So many results at once; each by itself where they do not lie side by side."""
    (c,), (x,), (start,) = loops.combiners, loops.outputs, loops.starts
    beside = lie_side_by_side(loops)
    for first in range(0, len(points), count):
        made = reduced_jointly(c, sums[first : first + count])
        if not beside:
            for lane, point in enumerate(points[first : first + count]):
                lone = vector.extract(made, [], [lane])
                store_result(c, x, start, point, lone)
            continue
        at = x.indices(points[first].ivs)
        if start is None:
            before = vector.load(ir.VectorType(made.type), x.buffer, at)
        else:
            before = vector.broadcast(made.type, start)
        vector.store(c.apply(before, made), x.buffer, at)


def neutral(loops: Loops) -> list[ir.Value]:
    """Vectors that change nothing, of every output one."""
    return [
        vector.broadcast(vector_type(loops.lanes, x.element), c.neutral())
        for c, x in zip(loops.combiners, loops.outputs, strict=True)
    ]


def reduce_strip(
    loops: Loops, points: list[Point], values: list[ir.Value], once: ValueCache
) -> list[ir.Value]:
    """All of the vector dimension: unrolled vectors, single vectors, the rest."""
    extent = loops.extent(loops.dim)
    if loops.formed in MASKING:
        return masked_folding(loops, points, extent, values)
    many = rounded_down(extent, elements(loops.lanes, loops.chains))
    whole = rounded_down(extent, elements(loops.lanes))
    values = folding(loops, points, (index(0), many), loops.chains, values)
    values = folding(loops, points, (many, whole), 1, values)
    if is_same(whole, extent):
        return values
    if loops.formed == SCALAR_REMAINDER:
        return single_elements(loops, points, (whole, extent), values)
    return masked_fold(loops, points, (whole, extent), values, once)


def folding(
    loops: Loops,
    points: list[Point],
    bounds: tuple[ir.Value, ir.Value],
    chains: int,
    values: list[ir.Value],
) -> list[ir.Value]:
    """Steps of so many vectors, each of them into accumulators of its own."""
    if is_same(*bounds):
        return values
    by = elements(loops.lanes, chains)

    def places(begin: ir.Value) -> list[list[Point]]:
        ats = (add(begin, as_index(elements(loops.lanes, n))) for n in range(chains))
        return [[point.moved(loops.dim, at) for point in points] for at in ats]

    def compute(
        at: ir.Value, carried: list[ir.Value], once: ValueCache
    ) -> list[ir.Value]:
        made: list[ir.Value] = []
        count = len(points) * len(loops.outputs)
        for chain, here in enumerate(places(at)):
            mine = carried[chain * count : (chain + 1) * count]
            made += loops.computed(here, mine, once)
        return made + carried[len(made) :]

    if loops.dim in loops.ahead:

        def reads(at: ir.Value) -> Round:
            return of_points(loops, loops.dim, [p for x in places(at) for p in x])

        return iterations(bounds, by, values, reads, compute)
    return emit_loop(bounds, by, values, lambda at, now: compute(at, now, ValueCache()))


def masked_folding(
    loops: Loops, points: list[Point], extent: ir.Value, values: list[ir.Value]
) -> list[ir.Value]:
    """All vectors under masks: what a lane does not count in stays as it was."""
    width = len(points) * len(loops.outputs)

    def fold(at: ir.Value, masks: Masks, values: list[ir.Value]) -> list[ir.Value]:
        made: list[ir.Value] = []
        for chain, mask in enumerate(masks):
            begin = add(at, as_index(elements(loops.lanes, chain)))
            here = [replace(p.moved(loops.dim, begin), mask=mask) for p in points]
            old = values[chain * width : (chain + 1) * width]
            new = loops.computed(here, old, ValueCache())
            made += [arith.select(mask, *x) for x in zip(new, old, strict=True)]
        return made

    if loops.formed == VECTOR_LENGTH:
        return by_lengths(loops.lanes, extent, values, fold)
    places = loops.by_places
    return under_masks(
        loops.lanes, extent, loops.chains, values, fold, by_places=places
    )


def masked_fold(
    loops: Loops,
    points: list[Point],
    bounds: tuple[ir.Value, ir.Value],
    values: list[ir.Value],
    once: ValueCache,
) -> list[ir.Value]:
    """The rest as one vector, folded into the first chain where it counts."""
    whole, extent = bounds
    mask = rest_lanes(loops.lanes, arith.subi(extent, whole))
    here = [replace(point.moved(loops.dim, whole), mask=mask) for point in points]
    nothing = neutral(loops) * len(points)
    made = loops.computed(here, nothing, once)
    combiners = loops.combiners * len(points)
    return [
        c.apply(old, arith.select(mask, new, rest))
        for c, old, new, rest in zip(combiners, values, made, nothing, strict=False)
    ] + values[len(nothing) :]


def single_elements(
    loops: Loops,
    points: list[Point],
    bounds: tuple[ir.Value, ir.Value],
    values: list[ir.Value],
) -> list[ir.Value]:
    """The rest one element at a time, folded into lane 0 of the first chain."""
    narrow = replace(side_by_side(loops, 1), lanes=ONE)
    first = [
        vector.broadcast(
            ir.VectorType.get([1], ir.VectorType(v.type).element_type),
            vector.extract(v, [], [0]),
        )
        for v in values[: len(points) * len(loops.outputs)]
    ]

    def one(at: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        here = [point.moved(loops.dim, at) for point in points]
        return narrow.computed(here, carried, ValueCache())

    lone = [
        vector.insert(vector.extract(r, [], [0]), v, [], [0])
        for r, v in zip(emit_loop(bounds, 1, first, one), values, strict=False)
    ]
    return lone + values[len(lone) :]
