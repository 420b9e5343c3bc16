"""The order of a window's taps: what neighbours read of each other comes once.

    for v in 0..3: for p in 0..4: sums[p] += x[p + v] * w[v]
      ->  for q in 0..6: here = x[q]; for v in 0..3: sums[q - v] += here * w[v]

All of it written out.  Each number of x is used by all points that it belongs to while
it is in a register; the sums' own order stays as it is.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import TYPE_CHECKING

from nanoloom.ir.access import Operand, constant_of, index
from nanoloom.ir.linalg_query import dims_of
from nanoloom.ir.mlir import ir
from nanoloom.vector.guarded_operand import GuardedOperand
from nanoloom.vector.value_cache import ValueCache

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile
    from nanoloom.vector.tile_points import Point, Step


def shared_operand(strip: RegisterTile, dims: list[int]) -> Operand | None:
    """What points that are computed at once read at places of each other.

    dims: the sum's.  None where not all of them are written out, or groups of steps
    are one.
    """
    moving = {dim for dim in strip.jam if dim != strip.dim}
    across = strip.kinds[strip.dim] == "reduction"
    if any(isinstance(x, GuardedOperand) for x in strip.inputs):
        return None  # whose sums have bounds
    if across or strip.steps or not all(is_written_out(strip, dim) for dim in dims):
        return None
    for x in strip.inputs:
        places = [] if x.is_scalar else [dims_of(e) for e in x.indexing.results]
        if any(place & moving and place & set(dims) for place in places):
            return x
    return None


def is_written_out(strip: RegisterTile, dim: int) -> bool:
    """Whether all steps of a dimension stand behind each other."""
    extent, count = constant_of(strip.extent(dim)), strip.unrolled.get(dim, 1)
    return extent is not None and (not count or extent <= count)


def written_out(
    strip: RegisterTile,
    x: Operand,
    dims: list[int],
    points: list[Point],
    values: list[ir.Value],
    inner: Step,
    once: ValueCache,
) -> list[ir.Value]:
    """All steps of some dimensions, by the place that they read of an operand.

    values: the results so far, a point's together.
    """
    extents = [range(constant_of(strip.extent(dim)) or 0) for dim in dims]
    places = [[index(number) for number in extent] for extent in extents]
    steps: list[tuple[int, Point]] = []
    for numbers in product(*places):
        for which, point in enumerate(points):
            for dim, number in zip(dims, numbers, strict=True):
                point = point.moved(dim, number)
            steps.append((which, point))
    made, count = list(values), len(strip.outputs)
    left = Counter(which for which, _ in steps)
    for which, point in sorted(steps, key=lambda step: place_of(x, step[1], once)):
        mine = slice(which * count, (which + 1) * count)
        made[mine] = inner([point], made[mine], once)
        left[which] -= 1
        if once.added is not None and not left[which] and count == 1:
            once.added(which, made[which])
    return made


def place_of(x: Operand, point: Point, once: ValueCache) -> list[int]:
    """Where a point reads an operand, from where its tile begins."""
    return [at.number for at in once.indices(x, point.ivs)]
