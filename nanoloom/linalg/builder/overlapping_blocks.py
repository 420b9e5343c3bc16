"""Blocks over each other, added up into the image on which they stand.

Place k of block l is pixel l * stride + k * dilation - low.  Pixels a stride apart are
a phase.  What reaches one are every so many places of blocks that follow each other, so
a phase is a sum along planes, and no number of it is another's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from math import gcd, prod
from operator import add

import numpy as np

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
class Phases:
    """Some that follow each other, and to which tap i is as far.

    Of phase first + j and step q, tap i is place + j + i * every of block
    q + shift - i * apart.
    """

    first: int
    count: int
    place: int
    every: int
    taps: int
    shift: int
    apart: int

    def goes_on(self, behind: Phases) -> bool:
        """Whether a phase behind is one more of these."""
        same = (self.taps, self.shift) == (behind.taps, behind.shift)
        at = self.first + self.count, self.place + self.count
        return same and at == (behind.first, behind.place)


@dataclass(frozen=True)
class Axis:
    """Blocks along an axis of an image, whose first `low` pixels are cut off.

    steps: whole strides that are computed, of which the image has `size` pixels.
    """

    block: int
    blocks: int
    stride: int
    dilation: int
    low: int
    size: int
    steps: int

    def phases(self) -> list[Phases]:
        """Those that any place reaches."""
        made: list[Phases] = []
        for phase in range(self.stride):
            found = self.phase(phase)
            if found and made and made[-1].goes_on(found):
                last = made.pop()
                found = replace(last, count=last.count + 1)
            made += [found] if found else []
        return made

    def phase(self, first: int) -> Phases | None:
        """place * dilation is first + low, but for whole strides: of every k-th."""
        common, pixel = gcd(self.stride, self.dilation), first + self.low
        every, apart = self.stride // common, self.dilation // common
        if pixel % common:
            return None
        place = pixel // common * pow(apart, -1, every) % every
        taps = -(-(self.block - place) // every)
        shift = (pixel - place * self.dilation) // self.stride
        if taps < 1:
            return None
        return Phases(first, 1, place, every, taps, shift, apart)


AT_ONCE = 16  # tensors that a kernel adds: a pointer each
Part = Callable[[Sequence[Phases]], Tensor]


def summed(b: Builder, x: Tensor, axes: Sequence[Axis]) -> Tensor:
    """[n, c, block..., blocks...] as the image [n, c, size...], not rounded."""
    return laid_over(b, axes, x.shape[:2], computed_as(x.dtype), adding(b, x, axes))


def laid_over(
    b: Builder, axes: Sequence[Axis], outer: Sequence[int], dtype: np.dtype, part: Part
) -> Tensor:
    """The image [outer..., size...] whose phases are made part by part.

    part: [outer..., count..., steps...] of some phases along each axis.
    """
    found = list(product(*[axis.phases() for axis in axes]))
    strides, steps = [a.stride for a in axes], [a.steps for a in axes]
    shape, zeros = (*outer, *strides, *steps), [0] * len(axes)
    reached = sum(prod(p.count for p in phases) for phases in found)
    if reached == prod(strides):
        planes = b.tensor(b.empty(shape, dtype), dtype)
    else:
        planes = b.full(shape, 0, dtype)
    for phases in found:
        made = part(phases)
        at = [*[0] * len(outer), *[p.first for p in phases], *zeros]
        planes = made if made.shape == shape else b.insert(made, planes, at)
    order = [len(outer) + d + k * len(axes) for d in range(len(axes)) for k in (1, 0)]
    mixed = b.transpose(planes, [*range(len(outer)), *order])
    sizes = [a.stride * a.steps for a in axes]
    whole = b.reshape(mixed, (*outer, *sizes))
    wanted = (*outer, *[a.size for a in axes])
    return whole if wanted == whole.shape else b.slice(whole, [0] * whole.rank, wanted)


def adding(b: Builder, x: Tensor, axes: Sequence[Axis]) -> Part:
    """Of [n, c, block..., blocks...]."""
    padded, low = with_border(b, x, axes)

    def part(phases: Sequence[Phases]) -> Tensor:
        counts, steps = [p.count for p in phases], [a.steps for a in axes]
        shape = (*x.shape[:2], *counts, *steps)
        rows = list(zip(phases, low, strict=True))
        if all(axis.stride == 1 for axis in axes):
            begin = [p.shift + border for p, border in rows]
            return along_taps(b, padded, phases, begin, shape)
        some: list[Tensor] = []
        for taps in product(*[range(p.taps) for p in phases]):
            places = [p.place + i * p.every for p, i in zip(phases, taps, strict=True)]
            begin = [
                p.shift + border - i * p.apart
                for (p, border), i in zip(rows, taps, strict=True)
            ]
            some.append(b.slice(padded, [0, 0, *places, *begin], shape))
        return total(b, some)

    return part


def along_taps(
    b: Builder,
    x: Tensor,
    phases: Sequence[Phases],
    begin: Sequence[int],
    shape: Sequence[int],
) -> Tensor:
    """The sum over all places, of which none is beside another's: a loop over them.

    begin: the block that step 0 reads of place 0.  What one place alone is read along
    has no more blocks than steps: an index without its tap has the axis to itself.
    """
    rank = len(phases)
    free = len(shape)
    starts, sizes, begin = [0] * x.rank, list(x.shape), list(begin)
    for d, p in enumerate(phases):
        if p.taps == 1:
            starts[2 + rank + d], sizes[2 + rank + d] = begin[d], shape[2 + rank + d]
            begin[d] = 0
    x = x if tuple(sizes) == x.shape else b.slice(x, starts, sizes)
    at = [ir.AffineDimExpr.get(d) for d in range(free + rank)]
    read = [
        at[2 + rank + d] - at[free + d] * p.apart + first
        for d, (p, first) in enumerate(zip(phases, begin, strict=True))
    ]
    places = Map.get(free + rank, 0, [at[0], at[1], *at[free:], *read])
    return b.generic(
        [(x, places)],
        [(b.full(shape, 0, computed_as(x.dtype)), dims(free + rank, range(free)))],
        [PARALLEL] * free + [REDUCTION] * rank,
        lambda element, sofar: sofar + element,
    )[0]


def with_border(
    b: Builder, x: Tensor, axes: Sequence[Axis]
) -> tuple[Tensor, list[int]]:
    """x [..., blocks...] with zeros where phases reach beyond, and how many before."""
    low, high = [0] * x.rank, [0] * x.rank
    for d, axis in enumerate(axes, x.rank - len(axes)):
        for p in axis.phases():
            low[d] = max(low[d], (p.taps - 1) * p.apart - p.shift)
            high[d] = max(high[d], p.shift + axis.steps - axis.blocks)
    return b.pad(x, low, high), low[x.rank - len(axes) :]


def total(b: Builder, some: Sequence[Tensor]) -> Tensor:
    """The sum of tensors of one shape."""
    shape, wide = some[0].shape, computed_as(some[0].dtype)
    if len(some) == 1:
        return b.cast(some[0], wide)
    each = dims(len(shape), range(len(shape)))
    made = b.full(shape, 0, wide)
    for first in range(0, len(some), AT_ONCE):
        made = b.generic(
            [(x, each) for x in some[first : first + AT_ONCE]],
            [(made, each)],
            [PARALLEL] * len(shape),
            lambda *numbers: reduce(add, numbers),
        )[0]
    return made
