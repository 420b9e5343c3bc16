"""Constants in f32 with which sums become the 8-bit integers that f64 makes of them.

    round((sum + offset) * factor) in f64
    round((f32(sum) + b) * a)      in f32, the product not rounded before

Both grow with the sum, which is an integer, and 8 bits have 255 steps: they are the
same function where each step is at the same sum.  A step that f64 has between two sums
leaves room, so that some a and b near factor and offset have all of them right, or all
but one that comes a sum late, which has an offset of its own: those are searched for,
and every step is looked at.  Half as many vectors, without f64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

Array = np.ndarray
F32, INT32 = np.dtype(np.float32), np.dtype(np.int32)
FACTORS, OFFSETS, PARTS = 3, 4, 8  # steps of f32 to both sides, and their parts
# Candidates behind which a late sum is kept, and what is left of some rows is no more
# than one of so many: of deep sums, which take longer than what follows them.
SOON, SEVERAL = 40, 12
NEVER = np.iinfo(INT32).min  # a sum that there is not
ONE_MORE = F32.type(1)


@dataclass(frozen=True)
class F32Scale:
    """f32 factors and offsets [n]; late int32 [n]: sums with ONE_MORE as offset."""

    factors: Array
    offsets: Array
    late: Array


def to_f32_scale(
    factor: Array, offset: Array, low: int, high: int, most: int
) -> F32Scale | None:
    """What stands for f64 factors and offsets [n], None where one has nothing.

    low, high: of what is rounded, where it saturates.  most: the sums are at most,
    without their sign, and less than 2^31.
    """
    if not (np.isfinite(factor) & np.isfinite(offset) & (factor > 0)).all():
        return None
    wanted = np.arange(low + 1, high + 1, dtype=np.float64)
    steps = Steps.of(factor, offset, wanted, most)
    a, b = np.zeros((2, len(factor)), F32)
    late, found = np.full(len(factor), NEVER, INT32), np.zeros(len(factor), bool)
    left = np.arange(len(factor))
    for tried, (more, near) in enumerate(candidates()):
        if tried == SOON:
            left = left[~found[left]]
            if SEVERAL * left.size > len(factor):
                return None
        rows = steps.at(left)
        here = nearby(
            factor[left], offset[left], rows.largest(offset[left]), more, near
        )
        right, later = rows.compared(*here)
        taken = right & (~found[left] | (later == NEVER))
        a[left[taken]], b[left[taken]] = (x[taken] for x in here)
        late[left[taken]], found[left[taken]] = later[taken], True
        left = left[~(taken & (later == NEVER))]
        if not left.size:
            break
    return F32Scale(a, b, late) if found.all() else None


def candidates() -> list[tuple[int, float]]:
    """Steps of f32 from factor and offset, the nearest first.

    Parts of an offset's step reach sums that are smaller than the largest.
    """
    pairs = [
        (more, part / PARTS)
        for more in range(-FACTORS, FACTORS + 1)
        for part in range(-OFFSETS * PARTS, OFFSETS * PARTS + 1)
    ]
    return sorted(pairs, key=lambda pair: abs(pair[0]) + abs(pair[1]))


def nearby(
    factor: Array, offset: Array, largest: Array, more: int, near: float
) -> tuple[Array, Array]:
    """f32 factors and offsets, so many steps of f32 away from those given.

    An offset's step is that of the largest sum that does not saturate.
    """
    a = factor.astype(F32)
    step = np.spacing(largest.astype(F32)).astype(np.float64)
    b = (np.rint(offset / step) + near) * step
    return a + F32.type(more) * np.spacing(a), b.astype(F32)


@dataclass(frozen=True)
class Steps:
    """Where f64's results grow.

    wanted [k]: what is rounded to.  sums [n, k]: the least ones of which it becomes
    that or more.  values [n, k]: what it becomes.  most: of sums that there are.
    """

    wanted: Array
    sums: Array
    values: Array
    most: int

    @staticmethod
    def of(factor: Array, offset: Array, wanted: Array, most: int) -> Steps:
        by, more = factor[:, None], offset[:, None]
        near = np.ceil((wanted - 0.5) / by - more)
        reached = np.rint((near - 1 + more) * by) >= wanted
        near = np.where(reached, near - 1, near)
        missed = np.rint((near + more) * by) < wanted
        sums = np.where(missed, near + 1, near)
        return Steps(wanted, sums, np.rint((sums + more) * by), most)

    def at(self, rows: Array) -> Steps:
        """Those of some of the results."""
        return replace(self, sums=self.sums[rows], values=self.values[rows])

    def largest(self, offset: Array) -> Array:
        """The largest sum with its offset, without their sign."""
        ends = self.sums[:, [0, -1]].clip(-self.most, self.most)
        return np.abs(ends + offset[:, None]).max(1, initial=1)

    def compared(self, a: Array, b: Array) -> tuple[Array, Array]:
        """For which rows f32 has the same steps, and the sums that come late.

        At most one of a row, which its own offset makes right.
        """
        missed = rounded(self.sums, a[:, None], b[:, None]) < self.wanted
        early = rounded(self.sums - 1, a[:, None], b[:, None]) >= self.wanted
        missed &= np.abs(self.sums) <= self.most
        early &= np.abs(self.sums - 1) <= self.most
        at = np.arange(len(a)), missed.argmax(1)
        grown = rounded(self.sums[at], a, b + ONE_MORE)
        one = (missed.sum(1) == 1) & (grown == self.values[at])
        right = ~early.any(1) & (one | ~missed.any(1))
        return right, np.where(one, self.sums[at], float(NEVER)).astype(INT32)


def rounded(sums: Array, a: Array, b: Array) -> Array:
    """What the instructions make of sums: f64 holds a product of two f32."""
    moved = sums.astype(F32) + b
    return np.rint(moved.astype(np.float64) * a)
