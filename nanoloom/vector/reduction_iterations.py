"""The rounds of one dimension of a sum: so many steps behind each other, then the rest.

for k in 0..n by 2: sums += f(k); sums += f(k + 1)
for k of what is left: sums += f(k)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from nanoloom.ir.access import constant_of, index
from nanoloom.ir.mlir import ir
from nanoloom.vector.choose_instruction import cuts
from nanoloom.vector.emit_loops import emit_loop
from nanoloom.vector.extents import is_next, is_same
from nanoloom.vector.guard import Bounds
from nanoloom.vector.guarded_operand import GuardedOperand
from nanoloom.vector.software_pipelining import sums
from nanoloom.vector.value_cache import ValueCache

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile
    from nanoloom.vector.tile_points import Point

Values: TypeAlias = list[ir.Value]
# From where on, how many, the results so far, and what is at hand: the next results.
Steps: TypeAlias = Callable[[ir.Value, int, Values, ValueCache], Values]


def in_rounds(
    strip: RegisterTile,
    dims: list[int],
    points: list[Point],
    values: Values,
    steps: Steps,
    once: ValueCache,
) -> Values:
    """The steps of the first one of some dimensions."""
    dim = dims[0]
    extent = strip.extent(dim)
    known, count = constant_of(extent), strip.unrolled.get(dim, 1)
    if known is not None and (count == 0 or known <= count):
        return steps(index(0), known, values, once)
    for begin, end, by in cuts(strip, dims, extent, count or 1):
        if is_same(begin, end) or begin == end:
            continue
        if is_next(begin, end, by):
            values = steps(begin, by, values, once)
            continue
        if dim in strip.ahead and not strip.masks:  # they need registers, too
            values = sums(strip, dims, (begin, end), by, points, values, steps)
            continue
        values = looped(strip, (begin, end), by, values, steps)
    return values


def looped(
    strip: RegisterTile, bounds: Bounds, by: int, values: Values, steps: Steps
) -> Values:
    """A loop of so many steps a round, with the results from one to the next.

    LLVM would write out those of an image that is read where it lies, and spill: the
    schedule says what is (schedule/library/schedule_implicit_padding.py).
    """

    def inside(at: ir.Value, carried: Values) -> Values:
        return steps(at, by, carried, ValueCache())

    rolled = any(isinstance(x, GuardedOperand) for x in strip.inputs)
    return emit_loop(bounds, by, values, inside, rolled=rolled)
