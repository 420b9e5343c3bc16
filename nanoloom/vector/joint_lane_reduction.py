"""Sums whose lanes are combined together: each becomes a lane (`ReduceJointly`).

    a b c d, vectors of partial results   ->   [all of a, all of b, all of c, all of d]

Shuffles of two vectors and an addition halve how many there are: four sums of eight
lanes take seven shuffles and not twelve, and are stored at once.  Within 128 bits of
32-bit numbers a shuffle is one instruction (unpcklpd, shufps; zip1, uzp1).
Bits of eight bytes are made of 64 conditions at once (combiner.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nanoloom.errors import Error
from nanoloom.ir.access import Access
from nanoloom.ir.mlir import ir, vector
from nanoloom.vector.combiner import PACKED, Combiner, all_bits

if TYPE_CHECKING:
    from nanoloom.vector.vectorize_loops import Loops

EIGHT = 8


def joint_reduction(loops: Loops) -> int:
    """How many points side by side of a tile are reduced together, as the schedule
    says; 1 for points that stand alone, those of a block that they do not fill."""
    count = loops.joint
    if count == 1:
        return 1
    axes = sorted(loops.jam, key=loops.order.index)
    packed = loops.combiners[0].operation == PACKED
    wide = not loops.lanes.scalable and loops.lanes.count >= count
    fits = count == EIGHT == loops.lanes.count if packed else wide
    if len(loops.outputs) != 1 or not axes or not fits:
        raise Error(f"no {count} results that lie side by side are sums along vectors")
    return count if loops.jam[axes[-1]] % count == 0 else 1


def lie_side_by_side(loops: Loops) -> bool:
    """Whether results of points side by side are one vector of memory.

    They are not where a sum's buffer is part of a larger one (a column of a Concat).
    """
    innermost = max(loops.jam, key=loops.order.index)
    return loops.outputs[0].access(innermost) is Access.CONTIGUOUS


def reduced_jointly(c: Combiner, sums: Sequence[ir.Value]) -> ir.Value:
    """A vector with all lanes of each of some vectors combined."""
    if c.operation == PACKED:
        return all_bits(sums)
    count, size, vectors = len(sums), len(sums) // 2, list(sums)
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [combined(c, one, other, count, size) for one, other in pairs]
        size //= 2
    (total,) = vectors
    while (lanes := ir.VectorType(total.type).shape[0]) > count:
        sides = range(lanes // 2), range(lanes // 2, lanes)
        total = c.apply(*(vector.shuffle(total, total, list(x)) for x in sides))
    return total


def combined(
    c: Combiner, one: ir.Value, other: ir.Value, count: int, size: int
) -> ir.Value:
    """Two vectors in one, in which half as many lanes are left of each.

    In each `count` lanes: the first ones of every two blocks of `size` meet the second.
    """
    lanes = ir.VectorType(one.type).shape[0]
    halves = [
        vector.shuffle(one, other, [
            lanes * which + first + block + begin + lane
            for first in range(0, lanes, count)
            for which in range(2)
            for block in range(0, count, 2 * size)
            for lane in range(size)
        ])
        for begin in (0, size)
    ]  # fmt: skip
    return c.apply(*halves)
