"""Zero points of the filters of convolutions of 8-bit integers.

    sum x * (w - q) == sum x * (w - m) - (q - m) * sum x

Filters without their zero point may be of 9 bits, and instructions multiply bytes.  So
they are kept as bytes w - m, m 0 or 128; the rest enters by the sums of windows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder, Map
from nanoloom.linalg.builder.scalar import is_unsigned
from nanoloom.linalg.builder.tensor import Tensor, changed
from nanoloom.linalg.builder.window import Window
from nanoloom.weights.derivations import Minus

INT32, INT16, INT8 = np.dtype(np.int32), np.dtype(np.int16), np.dtype(np.int8)
MIDDLE = 128  # of unsigned bytes


def is_zero(x: Tensor) -> bool:
    """Whether a tensor is known to hold zeros only."""
    return x.is_constant and x.size < 4096 and not x.array().any()


@dataclass(frozen=True)
class ByteFilters:
    """Filters [f, c, kernel...] as bytes, and what is to be taken from each number.

    rest: [] or [f], int32; None where it is zero.
    """

    stored: Tensor
    rest: Tensor | None = None
    groups: int = 1


def byte_filters(
    b: Builder, w: Tensor, zero: Tensor | None, groups: int
) -> ByteFilters:
    """Unsigned ones become signed where all is known, as instructions take filters."""
    if zero is None or is_zero(zero):
        return ByteFilters(w, None, groups)
    zero = b.reshape(zero, () if zero.size == 1 else (zero.size,))
    if not (w.is_constant and zero.is_constant and is_unsigned(w.dtype)):
        return ByteFilters(w, b.cast(zero, INT32), groups)
    rest = zero.array().astype(INT32) - MIDDLE
    made = changed(w, Minus((MIDDLE,), INT8))
    return ByteFilters(made, b.constant(rest) if rest.any() else None, groups)


def centered(b: Builder, w: Tensor, zero: Tensor | None) -> Tensor:
    """Filters minus their zero point: int8 where that holds them, else int16."""
    if zero is None or is_zero(zero):
        return w
    shape = () if zero.size == 1 else (zero.size, *(1,) * (w.rank - 1))
    filters = b.reshape(zero, shape)
    if not w.is_constant or not filters.is_constant:
        return b.elementwise(
            lambda s, z: s.cast(INT16) - z.cast(INT16), w, filters, dtype=INT16
        )
    zeros = filters.array().astype(INT16)
    symmetric = is_unsigned(w.dtype) and bool((zeros == MIDDLE).all())
    dtype = INT8 if symmetric else INT16
    return changed(w, Minus(tuple(zeros.reshape(-1).tolist()), dtype))


def without_rest(
    b: Builder, sums: Tensor, filters: ByteFilters, x: Tensor, window: Window
) -> Tensor:
    """Sums [n, result..., f] of bytes, made those of filters without zero points."""
    if filters.rest is None:
        return sums
    rest, read = filters.rest, window_sums(b, x, window, filters.groups)
    parted = sums.shape
    if filters.groups > 1:
        parted = *read.shape, sums.shape[-1] // filters.groups
        rest = b.reshape(rest, parted[-2:]) if rest.rank else rest
    made = b.elementwise(
        lambda s, q, t: s - q * t,
        b.reshape(sums, parted),
        rest,
        b.reshape(read, (*read.shape, 1)),
    )
    return b.reshape(made, sums.shape)


def window_sums(b: Builder, x: Tensor, window: Window, groups: int) -> Tensor:
    """Sums of what windows read, int32: [n, result...], and behind it several groups.

    x: [n, spatial..., c], padded, or [n, c, spatial...] in planes, of one group.
    """
    if groups > 1:
        x = b.reshape(x, (*x.shape[:-1], groups, x.shape[-1] // groups))
    image = b.reduce(
        lambda total, s: total + s,
        x,
        [1 if window.in_planes else -1],
        0,
        keepdims=False,
        dtype=INT32,
        prepare=lambda s: s.cast(INT32),
    )
    behind = image.shape[1 + window.rank :]
    out = b.full((x.shape[0], *window.result, *behind), 0, INT32)
    extent = Tensor(window.kernel, INT32, b.empty(window.kernel, INT32))
    free, count = out.rank, out.rank + window.rank
    at = [ir.AffineDimExpr.get(d) for d in range(count)]
    taps = [at[0], *window.taps(1, free), *at[1 + window.rank : free]]
    (sums,) = b.generic(
        [(image, Map.get(count, 0, taps)), (extent, Map.get(count, 0, at[free:]))],
        [(out, Map.get(count, 0, at[:free]))],
        [PARALLEL] * free + [REDUCTION] * window.rank,
        lambda s, _, total: total + s,
    )
    return sums
