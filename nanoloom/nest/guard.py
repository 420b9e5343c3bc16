"""Guards of reads, as ranges of a loop's steps: 0 <= begin + step * n < size.

    for n in 0..extent: x[begin + step * n] if it is within x
      ->  a prologue of the steps in front of x, a steady state within, an epilogue

Blocks of steps are partitioned likewise: those of the steady state ask nothing.  That
is Halide's loop partitioning.  Values that are known at run time: vector/guard.py.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_ENDS = 4  # blocks of a row that have code of their own


def steps_before(ahead: int, by: int, extent: int) -> int:
    """How many steps are in front of a place that is so far ahead, of so many."""
    return min(max(-(-ahead // by), 0), extent)


@dataclass(frozen=True)
class Guard:
    """An index within a dimension of `size`, at each step of a loop.

    reach: how far other loops go on from there: a window is within if all of it is.
    """

    begin: int
    step: int
    size: int
    reach: int = 0

    def steps(self, extent: int) -> range:
        """Those of so many that are within."""
        ends = -self.begin, self.size - self.reach - self.begin
        return range(*(steps_before(ahead, self.step, extent) for ahead in ends))


@dataclass(frozen=True)
class Partition:
    """Where blocks of a loop's steps begin: before the steady state, in it, behind.

    A block of the steady state is within with all of its steps.
    """

    prologue: range
    steady: range
    epilogue: range

    @staticmethod
    def of(inside: range, extent: int, count: int, *, whole: bool = False) -> Partition:
        """Blocks of `count` steps, the last one of what is left; whole: that is in no
        steady state."""
        every = range(0, extent, count)
        first = -(-inside.start // count)
        end = inside.stop // count
        if inside.stop == extent and not whole:
            end = len(every)
        steady = every[first : max(first, end)]
        return Partition(every[:first], steady, every[first + len(steady) :])

    @property
    def ends(self) -> list[int]:
        """The blocks that are not within."""
        return [*self.prologue, *self.epilogue]
