"""ConvTranspose with a filter for each channel: a convolution of planes for each phase.

    x [n, c, s...], w [c, 1, (j, r)...]  ->  [n, c, r..., q...], phases side by side

No lane is of another channel, and nothing is turned.  Phases that as many taps reach
are one convolution.
"""

from __future__ import annotations

from collections.abc import Sequence

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import (
    PARALLEL,
    REDUCTION,
    Builder,
    Map,
    computed_as,
)
from nanoloom.linalg.builder.indexing import dims
from nanoloom.linalg.builder.overlapping_blocks import Axis, Phases, laid_over
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.builder.window import Window


def phases_of_planes(b: Builder, x: Tensor, w: Tensor, axes: Sequence[Axis]) -> Tensor:
    """The image that the axes say: [n, c, o...], not rounded.

    w: tap j of place r is j * every + r of a filter, j descends.
    """

    def part(phases: Sequence[Phases]) -> Tensor:
        all_taps, rest = w.shape[2::2], [0, 0]
        rest += [
            d
            for n, p in zip(all_taps, phases, strict=True)
            for d in (n - p.taps, p.place)
        ]
        shape = [d for p in phases for d in (p.taps, p.count)]
        filters = b.slice(w, rest, (*w.shape[:2], *shape))
        return convolved(b, x, b.reshape(filters, (w.shape[0], *shape)), axes, phases)

    return laid_over(b, axes, x.shape[:2], computed_as(x.dtype), part)


def convolved(
    b: Builder, x: Tensor, w: Tensor, axes: Sequence[Axis], phases: Sequence[Phases]
) -> Tensor:
    """[n, c, s...], [c, (j, r)...] to [n, c, r..., q...]."""
    window, first = window_of(axes, phases)
    if 0 in window.size:  # all of it is beside the image
        ones = [p.count for p in phases]
        return b.full((*x.shape[:2], *ones, *window.result), 0, computed_as(x.dtype))
    read = (*x.shape[:2], *window.size)
    seen = x if read == x.shape else b.slice(x, [0, 0, *first], read)
    rank, wide = len(axes), computed_as(x.dtype)
    free = 2 + 2 * rank
    shape = (*x.shape[:2], *[p.count for p in phases], *window.result)
    at = [ir.AffineDimExpr.get(d) for d in range(free + rank)]
    pairs = [d for k in range(rank) for d in (at[free + k], at[2 + k])]

    def body(element: Scalar, weight: Scalar, total: Scalar) -> Scalar:
        return total + element.cast(wide) * weight.cast(wide)

    return b.generic(
        [
            (
                window.pad(b, seen),
                Map.get(len(at), 0, [*at[:2], *window.taps(2 + rank, free)]),
            ),
            (w, Map.get(len(at), 0, [at[1], *pairs])),
        ],
        [(b.full(shape, 0, wide), dims(len(at), range(free)))],
        [PARALLEL] * free + [REDUCTION] * rank,
        body,
    )[0]


def window_of(
    axes: Sequence[Axis], phases: Sequence[Phases]
) -> tuple[Window, tuple[int, ...]]:
    """The windows of some phases, and where in the image what they read begins."""
    begin = [p.shift - (p.taps - 1) * p.apart for p in phases]
    first = tuple(min(max(n, 0), a.blocks) for n, a in zip(begin, axes, strict=True))
    rows = list(zip(axes, phases, begin, first, strict=True))
    window = Window(
        tuple(p.taps for p in phases),
        (1,) * len(axes),
        tuple(p.apart for p in phases),
        tuple(at - n for _, _, n, at in rows),
        (0,) * len(axes),
        tuple(read_of(*row) - row[-1] for row in rows),
        tuple(a.steps for a in axes),
        in_planes=True,
    )
    return window, first


def read_of(axis: Axis, phases: Phases, begin: int, first: int) -> int:
    """Where what is read of an axis ends: a tap alone has no loop, and reads all."""
    end = min(axis.blocks, begin + axis.steps) if phases.taps == 1 else axis.blocks
    return max(end, first)
