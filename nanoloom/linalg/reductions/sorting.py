"""TopK: the best element, then the best one behind it, k times, all rows at once."""

from __future__ import annotations

import numpy as np

from nanoloom.linalg.words.builder import PARALLEL, REDUCTION, Builder, Map
from nanoloom.linalg.words.indexing import INT64, dims, map_generic, position
from nanoloom.linalg.words.loops import repeat
from nanoloom.linalg.words.node import Node
from nanoloom.linalg.words.places import write_at
from nanoloom.linalg.words.scalar import Scalar, is_float, select
from nanoloom.linalg.words.tensor import Tensor
from nanoloom.mlir import ir

NONE = -1  # the index of no element


def key_type(dtype: np.dtype) -> np.dtype:
    """The integer type whose order is the order of `dtype`."""
    if not is_float(dtype):
        return dtype
    return np.dtype(np.int64 if dtype == np.float64 else np.int32)


def key(x: Scalar, largest: bool) -> Scalar:
    """An integer that is larger where x comes earlier; NaN is above every number.

    The bits of a float, with those of negative ones turned around, order like it.
    """
    if is_float(x.dtype):
        wide = key_type(x.dtype)
        bits = select(x.is_nan(), x.absolute(), x + 0.0).bitcast(wide)  # -0 to +0
        most = np.iinfo(wide).max
        x = select(bits < 0, bits ^ int(most), bits)
    return x if largest else ~x


def top_k(b: Builder, node: Node) -> list[Tensor | None]:
    """Values and their indices along an axis; of equal ones the first comes first."""
    x = node.input(0)
    axis, largest = node.int("axis", -1) % x.rank, bool(node.int("largest", 1))
    count = node.int("k") if node.version < 10 else int(first(node, 1))
    if not 0 <= count <= x.shape[axis]:
        raise node.unsupported(f"k is {count}, the axis has {x.shape[axis]} elements")
    shape = tuple(count if d == axis else s for d, s in enumerate(x.shape))
    rows = tuple(s for d, s in enumerate(x.shape) if d != axis)
    start = [
        Tensor(shape, INT64, b.empty(shape, INT64)),
        b.full(rows, 0, key_type(x.dtype)),
        b.full(rows, NONE, INT64),
    ]

    def step(i: ir.Value, now: list[Tensor]) -> list[Tensor]:
        best, place = next_best(b, x, axis, largest, now[1], now[2])
        return [write_at(b, place, now[0], axis, i), best, place]

    indices = repeat(b, count, start, step)[0]
    return [pick(b, x, indices, axis), indices]


def first(node: Node, index: int) -> int:
    found = node.known(index)
    if found is None:
        raise node.unsupported(f"input {index} is missing")
    return int(found.reshape(-1)[0])


def next_best(
    b: Builder, x: Tensor, axis: int, largest: bool, last: Tensor, where: Tensor
) -> list[Tensor]:
    """Key and index of the best element behind (last, where), row by row."""

    def body(
        element: Scalar, limit: Scalar, before: Scalar, best: Scalar, found: Scalar
    ) -> list[Scalar]:
        mine, here = key(element, largest), position(axis)
        later = mine.equal(limit) & (here > before)
        behind = before.equal(NONE) | (mine < limit) | later
        sooner = mine.equal(best) & (here < found)
        better = found.equal(NONE) | (mine > best) | sooner
        taken = behind & better
        return [select(taken, mine, best), select(taken, here, found)]

    row = dims(x.rank, [d for d in range(x.rank) if d != axis])
    return b.generic(
        [(x, Map.get_identity(x.rank)), (last, row), (where, row)],
        [
            (b.full(last.shape, 0, last.dtype), row),
            (b.full(where.shape, NONE, INT64), row),
        ],
        [REDUCTION if d == axis else PARALLEL for d in range(x.rank)],
        body,
    )


def pick(b: Builder, x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """The elements at these indices along an axis."""
    source = b.value(x)
    return map_generic(
        b,
        indices.shape,
        x.dtype,
        [(indices, Map.get_identity(x.rank))],
        lambda i: b.load(
            source, x.dtype, [i if d == axis else position(d) for d in range(x.rank)]
        ),
    )


OPERATORS = {"TopK": top_k}
