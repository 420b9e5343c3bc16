"""Vectors of results that lie between each other, stored as they lie in memory.

    y[i, 0] = a, y[i, 1] = b, of 16 points i  ->  a0 b0 a1 b1 ..., two whole vectors

An image that is enlarged has such rows, and what is put together of parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nanoloom.ir.access import Operand, add, index
from nanoloom.ir.mlir import ir, vector
from nanoloom.nest.extent import ONE, Lanes

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile
    from nanoloom.vector.tile_points import Point

LEAST = 32  # bits: of narrower numbers a shuffle may take many instructions


def write_points(
    strip: RegisterTile, points: Sequence[Point], results: Sequence[ir.Value]
) -> None:
    """Write the results of some points, a point's behind each other."""
    outputs = strip.outputs
    for number, x in enumerate(outputs):
        made, count = results[number :: len(outputs)], together(strip, x)
        for n in range(0, len(points), count):
            point = points[n]
            if count == 1:
                strip.write(made[n], x, point)
            else:
                store(x, made[n : n + count], point.ivs, point.mask, strip.lanes)


def together(strip: RegisterTile, x: Operand) -> int:
    """How many vectors of a result are written at once: those between each other.

    Of any width there is no shuffle that knows it; they are stored at a distance.
    """
    if strip.lanes == ONE or strip.lanes.scalable:
        return 1
    return between(x, strip.dim, strip.jam, strip.order) or 1


def between(
    x: Operand, dim: int, jam: Mapping[int, int], order: Sequence[int]
) -> int | None:
    """How many vectors of a result fill what they leave between their lanes; None for
    results that are not so.

    jam: of dimensions, how many points are computed at once.  order: of their loops.
    """
    if x.is_scalar or getattr(x.element, "width", 0) < LEAST:
        return None
    kind, places = ir.MemRefType(x.buffer.type), list(x.indexing.results)[-2:]
    if len(places) < 2 or not all(isinstance(e, ir.AffineDimExpr) for e in places):
        return None
    along, last = (ir.AffineDimExpr(e).position for e in places)
    others = [d for expr in list(x.indexing.results)[:-2] for d in positions(expr)]
    count, inner = kind.shape[-1], max(jam, key=list(order).index, default=None)
    strides, _ = kind.get_strides_and_offset()
    dense = strides[-2:] == [count, 1] and not {along, last} & {*others}
    whole = jam.get(last) == count and inner == last
    return count if along == dim and dense and whole else None


def positions(expr: ir.AffineExpr) -> list[int]:
    """The dimensions of an index."""
    if isinstance(expr, ir.AffineDimExpr):
        return [expr.position]
    if isinstance(expr, ir.AffineBinaryExpr):
        return [*positions(expr.lhs), *positions(expr.rhs)]
    return []


def store(
    x: Operand,
    values: Sequence[ir.Value],
    ivs: Sequence[ir.Value],
    mask: ir.Value | None,
    lanes: Lanes,
) -> None:
    """Write the vectors of some neighbours, the first of which is at `ivs`.

    mask: which lanes of each count.
    """
    count, wide = len(values), lanes.count
    *outer, along, _ = x.indices(ivs)
    for part in range(count):
        first = part * wide
        at = [*outer, add(along, index(first // count)), index(first % count)]
        made = mixed(values, first, wide)
        if mask is None:
            vector.store(made, x.buffer, at)
        else:
            vector.maskedstore(x.buffer, at, mixed([mask] * count, first, wide), made)


def mixed(values: Sequence[ir.Value], first: int, wide: int) -> ir.Value:
    """A vector of what follows from a place on: a lane of each in turn."""
    count, places = len(values), range(first, first + wide)
    made = vector.shuffle(values[0], values[0], [n // count for n in places])
    for number, value in enumerate(values):
        if value != values[0]:
            own = enumerate(places)
            lanes = [wide + n // count if n % count == number else k for k, n in own]
            made = vector.shuffle(made, value, lanes)
    return made
