"""Sums of neighbours whose lanes are combined together: each becomes a lane.

    a b c d, vectors of partial results   ->   [all of a, all of b, all of c, all of d]

Shuffles of two vectors and an addition halve how many there are: four sums of eight
lanes take seven shuffles and not twelve, and are stored at once.  Within 128 bits of
32-bit numbers a shuffle is one instruction (unpcklpd, shufps; zip1, uzp1).
Bits of eight bytes are made of 64 conditions at once (combiner.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nanoloom.mlir import ir, vector
from nanoloom.nest.extent import Lanes
from nanoloom.vector.access import Access
from nanoloom.vector.combiner import PACKED, Combiner, all_bits

if TYPE_CHECKING:
    from nanoloom.vector.vectorize_loops import Loops

FOUR, EIGHT = 4, 8
# Of each four lanes: which of two vectors, and which of its lanes; what they meet.
HALVES = (((0, 0), (0, 1), (1, 0), (1, 1)), ((0, 2), (0, 3), (1, 2), (1, 3)))
SINGLES = (((0, 0), (0, 2), (1, 0), (1, 2)), ((0, 1), (0, 3), (1, 1), (1, 3)))


def joint_reduction(loops: Loops) -> int:
    """How many points of a tile give one behind the other in memory: four, eight of
    those whose bits are bytes; 1 for points that stand alone."""
    axes = sorted(loops.jam, key=loops.order.index)
    if len(loops.outputs) != 1 or not axes or axes[-1] == loops.dim:
        return 1
    count = FOUR
    if loops.combiners[0].operation == PACKED:
        count = EIGHT if loops.lanes == Lanes(EIGHT) else 1
    wide = not loops.lanes.scalable and loops.lanes.count >= FOUR
    beside = loops.outputs[0].access(axes[-1]) is Access.CONTIGUOUS
    return count if wide and beside and loops.jam[axes[-1]] % count == 0 else 1


def reduced_jointly(c: Combiner, sums: Sequence[ir.Value]) -> ir.Value:
    """A vector with all lanes of each of some vectors combined."""
    if c.operation == PACKED:
        return all_bits(sums)
    one, other, third, last = sums
    pairs = combined(c, one, other, HALVES), combined(c, third, last, HALVES)
    total = combined(c, *pairs, SINGLES)
    while (count := ir.VectorType(total.type).shape[0]) > FOUR:
        low, high = range(count // 2), range(count // 2, count)
        halves = [vector.shuffle(total, total, list(lanes)) for lanes in (low, high)]
        total = c.apply(*halves)
    return total


def combined(
    c: Combiner,
    one: ir.Value,
    other: ir.Value,
    pattern: Sequence[Sequence[tuple[int, int]]],
) -> ir.Value:
    """Two vectors in one, in which half as many lanes are left of each."""
    count = ir.VectorType(one.type).shape[0]
    halves: list[ir.Value] = []
    for side in pattern:
        lanes = [lane + count * which for which, lane in side]
        every = [first + lane for first in range(0, count, FOUR) for lane in lanes]
        halves.append(vector.shuffle(one, other, every))
    return c.apply(*halves)
