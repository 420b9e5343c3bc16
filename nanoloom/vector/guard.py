"""The steps of a loop that are within an image, as values (nest/guard.py).

Numbers that are known make no operations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Flag, auto

from nanoloom.ir.access import add, as_index, constant_of, difference, divide, index
from nanoloom.ir.mlir import arith, ir
from nanoloom.nest.guard import steps_before

Bounds = tuple[ir.Value, ir.Value]  # the first step, and the one behind the last


class Ends(Flag):
    """Those of a guarded row at which something may leave it."""

    NEITHER = 0
    FRONT = auto()
    BEHIND = auto()


@dataclass(frozen=True)
class GuardedDim:
    """A padded dimension, as a tile reads it.

    begin: of the tile, in the padded tensor.  low, size: where what is within is in it;
    a value where only a run knows.  high: how wide the padding behind it is.  steps:
    how far each axis of the sum goes along it.  reach: how far all of them go.
    row_step: how far the tile's rows do, 0 where they do not.
    """

    begin: ir.Value | int
    low: int
    high: int
    size: ir.Value | int
    steps: Mapping[int, int]
    reach: int
    row_step: int

    def may_leave(self, row: int, ends: Ends, fewest: int) -> bool:
        """Whether a row of a tile may read padding, where only a run knows.

        fewest: rows that the tile has at least.
        """
        first, last = (-(-n // self.row_step) for n in (self.low, self.high))
        front = Ends.FRONT in ends and row < first
        return front or (Ends.BEHIND in ends and row >= fewest - last)

    @property
    def end(self) -> ir.Value:
        """Where what is within ends in the padded tensor."""
        return add(as_index(self.size), index(self.low))

    def limits(self, extents: Sequence[int]) -> tuple[int, Bounds]:
        """The axis of the sum, and its steps that are within, where rows do not matter;
        extents: of all axes."""
        ((dim, step),) = self.steps.items()
        begin = add(as_index(self.begin), index(-self.low))
        extent = index(extents[dim])
        return dim, steps_within(begin, step, as_index(self.size), extent)


def steps_within(begin: ir.Value, by: int, size: ir.Value, extent: ir.Value) -> Bounds:
    """Of so many, from a place on: 0 <= begin + by * n < size."""
    ahead, end = difference(index(0), begin), difference(size, begin)
    return steps_to(ahead, by, extent), steps_to(end, by, extent)


def steps_to(ahead: ir.Value, by: int, most: ir.Value) -> ir.Value:
    """How many steps are in front of a place that is so far ahead, of so many."""
    far, every = constant_of(ahead), constant_of(most)
    if far is not None and every is not None:
        return index(steps_before(far, by, every))
    steps = divide(add(arith.maxsi(ahead, index(0)), index(by - 1)), index(by))
    return arith.minui(steps, most)


def larger(one: ir.Value, other: ir.Value) -> ir.Value:
    near, far = constant_of(one), constant_of(other)
    if near is not None and far is not None:
        return index(max(near, far))
    return arith.maxsi(one, other)
