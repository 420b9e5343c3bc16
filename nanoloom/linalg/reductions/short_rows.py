"""The first few of short rows in order, by reductions: rows lie in vectors.

    pair = the least of a row's pairs: a key, and its place below it
    pair = the least of those above pair
    ...

Where to take one of a row that is sorted takes longer than to go through the row.  Each
reduction reads what the one before it found, and nothing older: where many ways lead
from one to the last, the tiling of all of them together makes one for each way.
"""

from __future__ import annotations

import numpy as np

from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder, Map
from nanoloom.linalg.builder.indexing import INT64, dims, map_generic, position
from nanoloom.linalg.builder.lanes import lanes_of
from nanoloom.linalg.builder.scalar import Scalar, constant, select
from nanoloom.linalg.builder.sort import A_KEY, FEW, PART
from nanoloom.linalg.builder.sort_key import key, key_type
from nanoloom.linalg.builder.tensor import Tensor

PLACES = 31  # bits of a pair's place: with a key of 32 no pair is negative
ABOVE_ALL = int(np.iinfo(INT64).max)


def are_short(b: Builder, dtype: np.dtype, extent: int, count: int) -> bool:
    """Whether so few keys are wanted of a row of few: of as many as are taken one after
    the other at most, and of vectors of pairs that are gone through before one is.

    A length that is open is none of these (dynamic/samples.py).  Keys of 32 bits: one
    and its place are a number that vectors compare.
    """
    most = FEW if b.checks.is_open else A_KEY * lanes_of(INT64)
    few = 0 < count <= PART and extent <= most
    return few and key_type(dtype).itemsize < INT64.itemsize


def first_places(
    b: Builder, x: Tensor, axis: int, count: int, *, largest: bool
) -> Tensor:
    """The places of the first `count` along an axis: INT64."""
    kind = key_type(x.dtype)

    def pair(s: Scalar) -> Scalar:
        return (key(s, largest, kind).cast(INT64) << PLACES) | position(axis)

    pairs = map_generic(b, x.shape, INT64, [(x, Map.get_identity(x.rank))], pair)
    shape = [1 if d == axis else n for d, n in enumerate(x.shape)]
    found: list[Tensor] = []
    last: Tensor | None = None
    for _ in range(count):
        last = following(b, pairs, axis, last)
        place = b.elementwise(lambda s: s & ((1 << PLACES) - 1), last)
        found.append(b.reshape(place, shape))
    return b.concat(found, axis)


def following(b: Builder, pairs: Tensor, axis: int, last: Tensor | None) -> Tensor:
    """The least pair of each row above its last one; without, of all."""

    def least(mine: Scalar, *others: Scalar) -> Scalar:
        *before, sofar = others
        for one in before:
            mine = select(mine > one, mine, constant(ABOVE_ALL, INT64))
        return sofar.minimum(mine)

    rest = [d for d in range(pairs.rank) if d != axis]
    keep = dims(pairs.rank, rest)
    start = b.full([pairs.shape[d] for d in rest], ABOVE_ALL, INT64)
    return b.generic(
        [(pairs, Map.get_identity(pairs.rank)), *([(last, keep)] if last else [])],
        [(start, keep)],
        [REDUCTION if d == axis else PARALLEL for d in range(pairs.rank)],
        least,
    )[0]
