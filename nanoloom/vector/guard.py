"""The steps of a loop that are within an image, as values (nest/guard.py).

Numbers that are known make no operations.
"""

from __future__ import annotations

from nanoloom.mlir import arith, ir
from nanoloom.nest.guard import steps_before
from nanoloom.vector.access import add, constant_of, difference, divide, index

Bounds = tuple[ir.Value, ir.Value]  # the first step, and the one behind the last


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
