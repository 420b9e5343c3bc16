"""Blocks over each other, added up into the image on which they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import (
    PARALLEL,
    REDUCTION,
    Builder,
    Map,
    computed_as,
)
from nanoloom.linalg.builder.indexing import dims
from nanoloom.linalg.builder.tensor import Tensor


@dataclass(frozen=True)
class Axis:
    """Blocks along an axis of an image, side by side or over each other.

    Place k of block l is pixel l * stride + k * dilation.  Pixels that are a stride
    apart are a phase: k = tap * stride + phase is at phase of pixel (l + tap) then.
    Dilated places are some of a larger block, or one phase if the stride is 1.
    """

    block: int
    blocks: int
    stride: int
    dilation: int

    @property
    def apart(self) -> int:
        """Steps between two taps of a phase."""
        return self.dilation if self.stride == 1 else 1

    @property
    def spread(self) -> int:
        """Of places in the larger block."""
        return self.dilation if self.stride > 1 else 1

    @property
    def taps(self) -> int:
        return -(-self.block * self.spread // self.stride)

    @property
    def most_lacking(self) -> int:
        """How many pixels no block reaches at most, behind a border of none.

        blocks * stride > pixels - span, and steps are `behind` more.
        """
        span = (self.block - 1) * self.dilation + 1
        return span - 1 - self.behind * self.stride

    @property
    def behind(self) -> int:
        """How many steps the last tap is behind the first."""
        return (self.taps - 1) * self.apart


def summed(b: Builder, x: Tensor, axes: Sequence[Axis]) -> Tensor:
    """[n, c, block..., blocks...] as the image with all that blocks reach.

    [n, c, steps * stride...].
    """
    x = phases(b, x, axes)
    rank, wide = len(axes), computed_as(x.dtype)
    steps = [axis.blocks + axis.behind for axis in axes]
    shape = (
        *x.shape[:2],
        *[n for s, a in zip(steps, axes, strict=True) for n in (s, a.stride)],
    )
    free = 2 + 2 * rank
    at = [ir.AffineDimExpr.get(d) for d in range(free + rank)]
    places, read = [at[0], at[1]], list[ir.AffineExpr]()
    for d, axis in enumerate(axes):
        step, phase, tap = at[2 + 2 * d], at[3 + 2 * d], at[free + d]
        places += [tap, phase]
        read.append(step - tap * axis.apart + axis.behind)
    made = b.generic(
        [(x, Map.get(free + rank, 0, [*places, *read]))],
        [(b.full(shape, 0, wide), dims(free + rank, range(free)))],
        [PARALLEL] * free + [REDUCTION] * rank,
        lambda element, sofar: sofar + element,
    )[0]
    sizes = [s * a.stride for s, a in zip(steps, axes, strict=True)]
    return b.reshape(made, (*x.shape[:2], *sizes))


def phases(b: Builder, x: Tensor, axes: Sequence[Axis]) -> Tensor:
    """[n, c, block..., blocks...] as [n, c, (taps, stride)..., blocks...].

    With zeros where a place is none of the block, and around the blocks.
    """
    rank = len(axes)
    outer, inner = x.shape[:2], x.shape[2 + rank :]
    if any(axis.spread > 1 for axis in axes):
        x = b.reshape(x, (*outer, *[n for a in axes for n in (a.block, 1)], *inner))
        more = [n for a in axes for n in (0, a.spread - 1)]
        x = b.pad(x, [0] * x.rank, [0, 0, *more, *[0] * rank])
        x = b.reshape(x, (*outer, *[a.block * a.spread for a in axes], *inner))
    more = [a.taps * a.stride - a.block * a.spread for a in axes]
    around = [a.behind for a in axes]
    x = b.pad(x, [0] * (2 + rank) + around, [0, 0, *more, *around])
    apart = [n for a in axes for n in (a.taps, a.stride)]
    return b.reshape(x, (*outer, *apart, *x.shape[2 + rank :]))


def lacking(
    have: Sequence[int], pads: Sequence[int], image: Sequence[int]
) -> list[int]:
    """Pixels of the image behind all that blocks reach, along each axis: they are 0."""
    low = pads[: len(image)]
    ends = [before + size for before, size in zip(low, image, strict=True)]
    return [max(end - n, 0) for end, n in zip(ends, have, strict=True)]
