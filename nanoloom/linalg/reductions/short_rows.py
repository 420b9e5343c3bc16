"""The first few of short rows in order, by reductions: rows lie in vectors.

    key, place = the least key of a row, and its first place
    key, place = the least of those behind (key, place), and its first place
    ...

Where to take one of a row that is sorted takes longer than to go through the row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder, Map
from nanoloom.linalg.builder.indexing import INT64, dims, position
from nanoloom.linalg.builder.scalar import Scalar, constant, select
from nanoloom.linalg.builder.sort import FEW, PART
from nanoloom.linalg.builder.sort_key import key, key_type
from nanoloom.linalg.builder.tensor import Tensor


def are_short(dtype: np.dtype, extent: int, count: int) -> bool:
    """Whether so few keys are wanted of a row of few: of as many as are taken one after
    the other at most.  A length that is open is none of these (dynamic/samples.py).

    Keys of 32 bits: places of 64 would be the result's own numbers, side by side where
    they are found and apart where they are put, and no lanes are reduced into such.
    """
    few = 0 < count <= PART and extent <= FEW
    return few and key_type(dtype).itemsize < INT64.itemsize


def first_places(
    b: Builder, x: Tensor, axis: int, count: int, *, largest: bool
) -> Tensor:
    """The places of the first `count` along an axis: INT64."""
    kind = key_type(x.dtype)
    keys = b.elementwise(lambda s: key(s, largest, kind), x, dtype=kind)
    found: list[Tensor] = []
    last: tuple[Tensor, ...] = ()
    for _ in range(count):
        last = following(b, keys, axis, last)
        shape = [1 if d == axis else n for d, n in enumerate(x.shape)]
        found.append(b.reshape(b.cast(last[1], INT64), shape))
    return b.concat(found, axis)


def following(
    b: Builder, keys: Tensor, axis: int, last: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor]:
    """The key and the place that come next behind the last ones; without, the first.

    Of the type of keys, which has all numbers of places as well.
    """

    def here() -> Scalar:
        return position(axis).cast(keys.dtype)

    def if_behind(mine: Scalar, before: list[Scalar], value: Scalar) -> Scalar:
        if not before:
            return value
        same = mine.equal(before[0]) & (here() > before[1])
        behind = (mine > before[0]) | same
        return select(behind, value, constant(-1, keys.dtype))

    def least(mine: Scalar, *others: Scalar) -> Scalar:
        *before, sofar = others
        return sofar.minimum(if_behind(mine, before, mine))

    def place(mine: Scalar, best: Scalar, *others: Scalar) -> Scalar:
        *before, sofar = others
        at = select(mine.equal(best), here(), constant(-1, keys.dtype))
        return sofar.minimum(if_behind(mine, before, at))

    best = along(b, keys, axis, last, least)
    return best, along(b, keys, axis, (best, *last), place)


def along(
    b: Builder,
    keys: Tensor,
    axis: int,
    others: tuple[Tensor, ...],
    body: Callable[..., Scalar],
) -> Tensor:
    """A reduction to the least along an axis; others: a number for each row."""
    rest = [d for d in range(keys.rank) if d != axis]
    keep = dims(keys.rank, rest)
    start = b.full([keys.shape[d] for d in rest], -1, keys.dtype)
    return b.generic(
        [(keys, Map.get_identity(keys.rank)), *((x, keep) for x in others)],
        [(start, keep)],
        [REDUCTION if d == axis else PARALLEL for d in range(keys.rank)],
        body,
    )[0]
