"""Sums of 8-bit integers as 8-bit integers of another scale.

saturate(round((sum + offset) * factor) + start)

by arithmetic in f64, or in f32 with constants that give the same
(f32_requantization.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nanoloom.linalg.builder.scalar import Scalar, select

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)
SHIFT = 1.5 * 2.0**52  # f64 of this size are integers: an addition rounds to one
SINGLE_SHIFT = np.float32(1.5 * 2.0**23)  # the same for f32
SINGLE_MOST = 2.0**21  # values whose neighbours are integers behind that addition
MOST = 2.0**30  # rounded values up to here are int32 with room for a zero point


@dataclass(frozen=True)
class Requantization:
    """What becomes of sums.

    start: the zero point.  relu: what is rounded is at least 0.  largest: what scaled
    sums are at most, without their sign.
    """

    dtype: np.dtype
    start: int
    relu: bool
    largest: float

    @property
    def limits(self) -> tuple[int, int]:
        """Of what is rounded, where it saturates."""
        limits = np.iinfo(self.dtype)
        low, high = int(limits.min) - self.start, int(limits.max) - self.start
        return max(low, 0) if self.relu else low, high

    def of(self, total: Scalar, factor: Scalar, *offset: Scalar) -> Scalar:
        """The result of one sum; factor and offset in f64."""
        value = total.cast(FLOAT64)
        for more in offset:
            value = value + more
        near = self.largest < MOST
        whole = rounded(value, factor) if near else far_rounded(value, factor)
        return self.finished(whole + self.start)

    def in_f32(
        self, total: Scalar, factor: Scalar, offset: Scalar, *wrong: Scalar
    ) -> Scalar:
        """The same by f32 factors and offsets; wrong: sums, each with its own offset.

        After one another, so that each is a comparison and a choice.
        """
        for sum_, own in zip(wrong[::2], wrong[1::2], strict=True):
            offset = select(total.equal(sum_), own, offset)
        value = total.cast(FLOAT32) + offset
        shifted = value.math("fma", factor, float(SINGLE_SHIFT)).bitcast(INT32)
        whole = shifted + (self.start - int(SINGLE_SHIFT.view(np.int32)))
        return self.finished(whole)

    def finished(self, moved: Scalar) -> Scalar:
        """What is rounded, with the zero point, in 8 bits."""
        if self.relu and self.start > np.iinfo(self.dtype).min:
            moved = moved.maximum(self.start)
        return packed(moved, self.dtype)


def packed(whole: Scalar, dtype: np.dtype) -> Scalar:
    """An int32 in 8 bits; what does not fit saturates.

    The limits are those of the type itself, at last: instructions that pack vectors
    have them, so that they cost nothing.
    """
    limits = np.iinfo(dtype)
    return whole.maximum(int(limits.min)).minimum(int(limits.max)).cast(dtype)


def nearest_integer(value: Scalar) -> Scalar:
    """An f32 up to SINGLE_MOST as int32, ties to even."""
    return (value + float(SINGLE_SHIFT)).bitcast(INT32) - int(SINGLE_SHIFT.view(INT32))


def rounded(value: Scalar, by: Scalar) -> Scalar:
    """value * by in f64 as int32, ties to even: the low bits of a sum without fraction.

    Where there is an instruction for both, the product is not rounded before.
    """
    return value.times_plus(by, SHIFT).bitcast(INT64).cast(INT32)


def far_rounded(value: Scalar, by: Scalar) -> Scalar:
    """The same of numbers that may lie beyond int32."""
    inside = (value * by).maximum(-MOST).minimum(MOST)
    return (inside + SHIFT).bitcast(INT64).cast(INT32)
