"""Sorting in linear time: digit by digit, the least significant one first.

    keys:    3 1 2 1     unsigned; the least one comes first, the first of equal ones
    places:  1 3 2 0

A pass counts how often each value of a digit occurs, which says where the keys with it
begin, and moves all keys there in order.  Digits above the largest difference of two
keys are not looked at.  Where only the first ones are wanted, a key behind the last of
those found so far is left out; and where they are few, they are taken one after the
other (partial_sort.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.indexing import INT64
from nanoloom.linalg.builder.key_row import Row
from nanoloom.linalg.builder.key_scan import Carried, Scan
from nanoloom.linalg.builder.lanes import lanes_of
from nanoloom.linalg.builder.loops import repeat_while as tensors_while
from nanoloom.linalg.builder.numbered_loops import State, repeat, repeat_while, when
from nanoloom.linalg.builder.pairs import (
    KEY,
    PLACE,
    copied,
    part_of,
    room,
    with_pair,
)
from nanoloom.linalg.builder.partial_sort import partly_sorted
from nanoloom.linalg.builder.rank_sort import sorted_by_ranks
from nanoloom.linalg.builder.scalar import Scalar, constant, from_index, select
from nanoloom.linalg.builder.slices import element, index, with_element
from nanoloom.linalg.builder.sort_key import UINT32
from nanoloom.linalg.builder.tensor import Tensor

DIGIT = 8  # bits of a digit that is sorted by
FEW, PART = 64, 8  # keys, one of so many: at most are taken one after the other
A_KEY = 32  # to take one takes as long as so many vectors of keys with one, as measured
SLACK = 256  # keys that are collected besides twice the wanted ones


def first_pairs(b: Builder, row: Row, size: Scalar, count: Scalar, most: int) -> Tensor:
    """The least of a row's first `size` keys in order, beside their places: a `room`.

    count: how many are wanted, at most `size` and `most`; what stands behind them is
    none of them.  Within a loop only.
    """

    def ranks(now: list[Tensor], _: list[Scalar]) -> State:
        return [sorted_by_ranks(b, row, size, now[0])], []

    def few(now: list[Tensor], _: list[Scalar]) -> State:
        return [partly_sorted(b, row, size, count, now[0])], []

    def many(now: list[Tensor], _: list[Scalar]) -> State:
        return [collected(b, row, size, count, now[0])], []

    only_few = most <= FEW
    sides, keys = (1, most) if only_few else (2, row.x.shape[-1])
    into = [room(b, sides, keys + 1, row.kind)]  # ranks put the others behind them
    short = is_short(size, count, row.kind)
    made, _ = when(b, short, (into, []), ranks)
    is_few = ~short if only_few else ~short & (count * PART <= size)
    made, _ = when(b, is_few, (made, []), few)
    if only_few:
        return made[0]
    return when(b, ~short & ~is_few, (made, []), many)[0][0]


def is_short(size: Scalar, count: Scalar, kind: np.dtype) -> Scalar:
    """Whether comparing all keys with vectors of them takes less than taking `count`,
    as few as are taken one after the other at most."""
    vectors = (size + (lanes_of(kind) - 1)) / lanes_of(kind)
    return size * vectors <= count.minimum(FEW) * A_KEY


def collected(
    b: Builder, row: Row, size: Scalar, count: Scalar, into: Tensor
) -> Tensor:
    """Keys not above a limit are collected, sorted when they are many, and cut.

    The limit falls with each cut, so that few keys are collected afterwards.
    """
    kind = row.kind
    many = count * 2 + SLACK
    start = constant(0, INT64), constant(0, INT64), constant(-1, kind)

    def lacks(_: list[Tensor], now: list[Scalar]) -> Scalar:
        return now[0] < size

    def step(pairs: list[Tensor], now: list[Scalar]) -> State:
        done, filled, limit = now
        part = (size - done).minimum(many)

        def may_be(mine: Scalar, _: Carried) -> Scalar:
            return mine <= limit

        def put(mine: Scalar, place: Scalar, now: Carried) -> State:
            at = now[1][0].index()
            made = with_pair(b, now[0][0], at, mine, place.cast(kind))
            return [made], [now[1][0] + 1]

        scan = Scan(row, done, done + part, may_be, put)
        (made,), (filled,) = scan.run(b, (pairs, [filled]))
        done = done + part
        is_cut = (filled >= many) | (done >= size)
        made = in_order(b, made, select(is_cut, filled, 0))
        last = part_of(b, made, (count - 1).maximum(0).index(), KEY)
        lower = last - select(last.equal(0), constant(0, kind), 1)
        limit = select(is_cut & (filled >= count), lower, limit)
        return [made], [done, select(is_cut, filled.minimum(count), filled), limit]

    return repeat_while(b, ([into], list(start)), lacks, step)[0][0]


def by_columns(b: Builder, keys: Tensor, size: Scalar) -> Tensor:
    """Places of the first `size` rows of keys [n, m] in their order, as `first_pairs`.

    Within a loop only.
    """
    extent, columns = keys.shape

    def number(i: ir.Value, now: list[Tensor], _: list[Scalar]) -> State:
        place = from_index(i).cast(keys.dtype)
        return [with_pair(b, now[0], i, place, place)], []

    def column(i: ir.Value, now: list[Tensor], _: list[Scalar]) -> State:
        last = constant(0, INT64) - from_index(i) + from_index(index(columns)) - 1

        def look_up(i: ir.Value, now: list[Tensor], _: list[Scalar]) -> State:
            place = part_of(b, now[0], i, PLACE)
            found = element(b, keys, [place.index(), last.index()])
            return [with_pair(b, now[0], i, found, place)], []

        made, _ = repeat(b, size.index(), (now, []), look_up)
        return [in_order(b, made[0], size)], []

    start = [room(b, 2, extent, keys.dtype)], list[Scalar]()
    numbered, _ = repeat(b, size.index(), start, number)
    return repeat(b, index(columns), (numbered, []), column)[0][0]


def in_order(b: Builder, pairs: Tensor, size: Scalar) -> Tensor:
    """The first `size` pairs in the order of their keys, equal ones as they stand.

    Two digits a trip, there and back.
    """
    least, bits = spread(b, pairs, size)
    trips = ((bits + (2 * DIGIT - 1)) / (2 * DIGIT)).index()

    def step(i: ir.Value, now: list[Tensor], _: list[Scalar]) -> State:
        shift = from_index(i).cast(pairs.dtype) * (2 * DIGIT)
        there = Digit(size.index(), least, shift, 0).moved(b, now[0])
        return [Digit(size.index(), least, shift + DIGIT, 1).moved(b, there)], []

    return repeat(b, trips, ([pairs], []), step)[0][0]


def spread(b: Builder, pairs: Tensor, size: Scalar) -> tuple[Scalar, Scalar]:
    """The least key, and how many bits the largest difference from it has."""
    kind = pairs.dtype
    start = [constant(-1, kind), constant(0, kind)]

    def step(i: ir.Value, _: list[Tensor], ends: list[Scalar]) -> State:
        here = part_of(b, pairs, i, KEY)
        return [], [ends[0].minimum(here), ends[1].maximum(here)]

    _, (least, most) = repeat(b, size.index(), ([], start), step)
    zeros = (most.maximum(least) - least).math("ctlz")
    return least, constant(8 * kind.itemsize, kind) - zeros


@dataclass(frozen=True)
class Digit:
    """The bits above `shift` of what keys on one side are more than the least."""

    size: ir.Value
    least: Scalar
    shift: Scalar
    side: int

    def of(self, b: Builder, pairs: Tensor, i: ir.Value) -> Scalar:
        far = part_of(b, pairs, i, KEY, self.side) - self.least
        return (far >> self.shift) & ((1 << DIGIT) - 1)

    def starts(self, b: Builder, pairs: Tensor) -> Tensor:
        """How many pairs have less than each value of the digit: UINT32."""

        def count(i: ir.Value, now: list[Tensor], _: list[Scalar]) -> State:
            at = [(self.of(b, pairs, i) + 1).index()]
            return [with_element(b, now[0], at, element(b, now[0], at) + 1)], []

        def add(i: ir.Value, now: list[Tensor], sums: list[Scalar]) -> State:
            sums = [sums[0] + element(b, now[0], [i])]
            return [with_element(b, now[0], [i], sums[0])], sums

        zeros = b.full([(1 << DIGIT) + 1], 0, UINT32)
        counts, _ = repeat(b, self.size, ([zeros], []), count)
        zero = constant(0, UINT32)
        return repeat(b, index(1 << DIGIT), (counts, [zero]), add)[0][0]

    def moved(self, b: Builder, pairs: Tensor) -> Tensor:
        """The pairs on the other side, in the order of the digit and as they stand."""

        def move(i: ir.Value, now: list[Tensor], _: list[Scalar]) -> State:
            digit = [self.of(b, now[1], i).index()]
            at = element(b, now[0], digit)
            starts = with_element(b, now[0], digit, at + 1)
            spots = (i, self.side), (at.index(), 1 - self.side)
            return [starts, copied(b, now[1], *spots)], []

        start = [self.starts(b, pairs), pairs], list[Scalar]()
        return repeat(b, self.size, start, move)[0][1]


def each_row(
    b: Builder,
    rows: int,
    carried: Sequence[Tensor],
    step: Callable[[ir.Value, list[Tensor]], Sequence[Tensor]],
) -> list[Tensor]:
    """carried = step(row, carried) for every row; a loop of one trip is one, too.

    So what a step makes is memory of one kernel, and its numbers are known there.
    """
    start = b.full([], 0, INT64)

    def goes_on(now: list[Tensor]) -> Scalar:
        return element(b, now[0], []) < rows

    def trip(now: list[Tensor]) -> list[Tensor]:
        row = element(b, now[0], [])
        return [
            with_element(b, now[0], [], row + 1),
            *step(row.index(), now[1:]),
        ]

    return tensors_while(b, [start, *carried], goes_on, trip)[1:]
