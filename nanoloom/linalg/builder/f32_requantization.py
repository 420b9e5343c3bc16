"""Constants in f32 with which sums become the 8-bit integers that f64 makes of them.

    round((sum + offset) * factor) in f64
    round((f32(sum) + b) * a)      in f32, the product not rounded before

Both grow with the sum, which is an integer, and 8 bits have 255 steps: they are the
same function where each step is at the same sum.  A step that f64 has between two sums
leaves room, so that some a and b near factor and offset have all of them right, or all
but a few that come a sum early or late: such sums have offsets of their own.  Those are
searched for, and every step is looked at.  Half as many vectors, without f64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray
F32, INT32 = np.dtype(np.float32), np.dtype(np.int32)
FACTORS, OFFSETS, PARTS = 3, 4, 8  # steps of f32 to both sides, and their parts
# Candidates behind which some wrong sums are kept, and what is left of some rows is no
# more than one of so many: of deep sums, which take longer than what follows them.
SOON, SEVERAL = 40, 12
# Sums with offsets of their own: each is a comparison and a choice for a vector.  With
# those of two f32 is still shorter than f64, whose vectors are twice as many.
MOST_WRONG = 2
NEVER = np.iinfo(INT32).min  # a sum that there is not


@dataclass(frozen=True)
class F32Scale:
    """f32 factors and offsets [n]; int32 wrong [m, n]: sums with offsets own [m, n]."""

    factors: Array
    offsets: Array
    wrong: Array
    own: Array

    @staticmethod
    def without(count: int) -> F32Scale:
        """Room for so many results."""
        none, zeros = np.full((MOST_WRONG, count), NEVER, INT32), np.zeros(count, F32)
        return F32Scale(zeros, zeros.copy(), none, np.zeros(none.shape, F32))

    def take(self, rows: Array, other: F32Scale, its: Array) -> None:
        """Some results of another one in the place of these rows."""
        self.factors[rows], self.offsets[rows] = other.factors[its], other.offsets[its]
        self.wrong[:, rows], self.own[:, rows] = other.wrong[:, its], other.own[:, its]

    @property
    def counts(self) -> Array:
        """How many sums of each have offsets of their own."""
        return (self.wrong != NEVER).sum(0)

    def least(self) -> F32Scale:
        """The same with room for no more of them than there are."""
        most = self.counts.max(initial=0)
        return F32Scale(self.factors, self.offsets, self.wrong[:most], self.own[:most])


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
    best = F32Scale.without(len(factor))
    fewest = np.full(len(factor), MOST_WRONG + 1)
    left = np.arange(len(factor))
    for tried, (more, near) in enumerate(candidates()):
        if tried == SOON:
            left = left[fewest[left] > MOST_WRONG]
            if SEVERAL * left.size > len(factor):
                return None
        rows = steps.at(left)
        right, made = rows.compared(*rows.nearby(more, near))
        taken = right & (made.counts < fewest[left])
        best.take(left[taken], made, taken)
        fewest[left[taken]] = made.counts[taken]
        left = left[fewest[left] > 0]
        if not left.size:
            break
    return best.least() if (fewest <= MOST_WRONG).all() else None


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


@dataclass(frozen=True)
class Steps:
    """Where f64's results grow.

    factor, offset [n].  wanted [k]: what is rounded to.  sums [n, k]: the least ones of
    which it becomes that or more.  most: of sums that there are, without their sign.
    """

    factor: Array
    offset: Array
    wanted: Array
    sums: Array
    most: int

    @staticmethod
    def of(factor: Array, offset: Array, wanted: Array, most: int) -> Steps:
        by, more = factor[:, None], offset[:, None]
        near = np.ceil((wanted - 0.5) / by - more)
        reached = np.rint((near - 1 + more) * by) >= wanted
        near = np.where(reached, near - 1, near)
        missed = np.rint((near + more) * by) < wanted
        sums = np.where(missed, near + 1, near)
        return Steps(factor, offset, wanted, sums, most)

    def at(self, rows: Array) -> Steps:
        """Those of some of the results."""
        given = self.factor[rows], self.offset[rows], self.wanted, self.sums[rows]
        return Steps(*given, self.most)

    def nearby(self, more: int, near: float) -> tuple[Array, Array]:
        """f32 factors and offsets, so many steps of f32 away from those given.

        An offset's step is that of the largest sum that does not saturate.
        """
        a = self.factor.astype(F32)
        step = np.spacing(self.largest().astype(F32)).astype(np.float64)
        b = (np.rint(self.offset / step) + near) * step
        return a + F32.type(more) * np.spacing(a), b.astype(F32)

    def largest(self) -> Array:
        """The largest sum with its offset, without their sign."""
        ends = self.sums[:, [0, -1]].clip(-self.most, self.most)
        return np.abs(ends + self.offset[:, None]).max(1, initial=1)

    def compared(self, a: Array, b: Array) -> tuple[Array, F32Scale]:
        """For which rows f32 has the same steps, with what is wrong at first.

        Sums next to a step that their own offsets make right, one more or less.
        """
        missed = rounded(self.sums, a[:, None], b[:, None]) < self.wanted
        early = rounded(self.sums - 1, a[:, None], b[:, None]) >= self.wanted
        missed &= np.abs(self.sums) <= self.most
        early &= np.abs(self.sums - 1) <= self.most
        right = missed.sum(1) + early.sum(1) <= MOST_WRONG
        made = F32Scale.without(len(a))
        made.factors[:], made.offsets[:] = a, b
        made.own[:] = b
        for n in np.flatnonzero(right & (missed.any(1) | early.any(1))):
            late, soon = self.sums[n, missed[n]], self.sums[n, early[n]] - 1
            at = np.concatenate([late, soon])
            own = b[n] + np.repeat(np.array([1, -1], F32), [late.size, soon.size])
            grown = np.rint((at + self.offset[n]) * self.factor[n])
            right[n] = (rounded(at, a[n], own) == grown).all()
            made.wrong[: at.size, n], made.own[: at.size, n] = at, own
        return right, made


def rounded(sums: Array, a: Array, b: Array) -> Array:
    """What the instructions make of sums: f64 holds a product of two f32."""
    moved = sums.astype(F32) + b
    return np.rint(moved.astype(np.float64) * a)
