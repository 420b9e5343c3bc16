"""Sorting in linear time: digit by digit, the least significant one first.

    keys:    3 1 2 1     unsigned; the least one comes first, the first of equal ones
    places:  1 3 2 0

A pass counts how often each value of a digit occurs, which says where the keys with it
begin, and moves all keys there in order.  Digits above the largest difference of two
keys are not looked at.  Where only the first few are wanted, the keys that are certainly
behind them are left out in front of it, by one look at their highest digit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.indexing import INT64
from nanoloom.linalg.builder.loops import (
    Numbered,
    repeat,
    repeat_numbered,
    repeat_while,
)
from nanoloom.linalg.builder.scalar import (
    Scalar,
    constant,
    from_index,
    is_float,
    is_unsigned,
    select,
)
from nanoloom.linalg.builder.slices import element, index, with_element
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.mlir import ir

UINT32, UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)
KEY, PLACE = 0, 1  # of a pair
DIGIT = 8  # bits of a digit that is sorted by
WIDE = 11  # bits of the one that tells which keys are certainly behind


def key_type(dtype: np.dtype) -> np.dtype:
    """Of the keys that stand for elements of this type."""
    return UINT64 if dtype.itemsize == 8 else UINT32


def key(x: Scalar, largest: bool = False) -> Scalar:
    """A number that is smaller where x comes earlier; NaN is above every number.

    The bits of a float, with those of negative ones turned around, order like it.
    """
    kind = key_type(x.dtype)
    signed = np.dtype(f"i{kind.itemsize}")
    if is_float(x.dtype):
        number = select(x.is_nan(), constant(np.nan, x.dtype), x + 0.0)  # -0 to +0
        bits = number.bitcast(signed)
        bits = select(bits < 0, bits ^ int(np.iinfo(signed).max), bits)
    else:
        bits = x.cast(kind if is_unsigned(x.dtype) else signed)
    if not is_unsigned(bits.dtype):
        bits = bits.cast(kind) ^ (1 << (8 * kind.itemsize - 1))
    return ~bits if largest else bits


@dataclass(frozen=True)
class Keys:
    """The first `size` keys of a row, each beside the place that it was at.

    pairs: [n, 2], UINT32 or UINT64.  least: of all keys; what is sorted by is the
    difference from it, which has `bits` bits at most.
    """

    pairs: Tensor
    size: ir.Value
    least: Scalar
    bits: Scalar

    def digit(self, b: Builder, i: ir.Value, shift: Scalar, bits: int) -> Scalar:
        """Of key i, the bits above `shift`."""
        far = element(b, self.pairs, [i, index(KEY)]) - self.least
        return (far >> shift) & ((1 << bits) - 1)

    def copied(self, b: Builder, i: ir.Value, into: Tensor, at: ir.Value) -> Tensor:
        """`into` with pair i at a place."""
        for part in map(index, (KEY, PLACE)):
            found = element(b, self.pairs, [i, part])
            into = with_element(b, into, [at, part], found)
        return into


def first_places(
    b: Builder, keys: Tensor, size: ir.Value, count: ir.Value | None
) -> Tensor:
    """Where the least of a row's first `size` keys are, in order: [n, 2], see Keys.

    count: how many are wanted, at most `size`, None for all; what stands behind them is
    no place.  Within a loop only.
    """
    least, bits = spread(b, keys, size)
    row = Keys(numbered(b, keys), size, least, bits)
    return in_order(b, row if count is None else candidates(b, row, count))


def numbered(b: Builder, keys: Tensor) -> Tensor:
    """All keys of a row beside their places."""
    source, kind = b.value(keys), keys.dtype

    def pair(i: Scalar, part: Scalar) -> Scalar:
        return select(part.equal(KEY), b.load(source, kind, [i]), i.cast(kind))

    return b.generate([*keys.shape, 2], kind, pair)


def spread(b: Builder, keys: Tensor, size: ir.Value) -> tuple[Scalar, Scalar]:
    """The least key, and how many bits the largest difference from it has."""
    kind = keys.dtype
    start = [constant(int(np.iinfo(kind).max), kind), constant(0, kind)]

    def step(i: ir.Value, _: list[Tensor], ends: list[Scalar]) -> Numbered:
        here = element(b, keys, [i])
        return [], [ends[0].minimum(here), ends[1].maximum(here)]

    _, (least, most) = repeat_numbered(b, size, [], start, step)
    zeros = (most - least).math("ctlz")
    return least, constant(8 * kind.itemsize, kind) - zeros


def counted(b: Builder, row: Keys, shift: Scalar, bits: int) -> Tensor:
    """How often each value of a digit occurs, behind a zero: UINT32 [2 ** bits + 1]."""

    def step(i: ir.Value, now: list[Tensor]) -> list[Tensor]:
        at = [(row.digit(b, i, shift, bits) + 1).index()]
        return [with_element(b, now[0], at, element(b, now[0], at) + 1)]

    return repeat(b, row.size, [b.full([(1 << bits) + 1], 0, UINT32)], step)[0]


def candidates(b: Builder, row: Keys, count: ir.Value) -> Keys:
    """The keys that may be among the first `count` ones, in order of their places."""
    shift = row.bits.maximum(WIDE) - WIDE
    end = first_without(b, counted(b, row, shift, WIDE), from_index(count))

    def keep(i: ir.Value, now: list[Tensor], last: list[Scalar]) -> Numbered:
        stays = row.digit(b, i, shift, WIDE) < end.cast(row.least.dtype)
        made = row.copied(b, i, now[0], last[0].index())
        return [made], [last[0] + stays.cast(INT64)]

    start = [room_for(b, row.pairs)], [constant(0, INT64)]
    (pairs,), (size,) = repeat_numbered(b, row.size, *start, keep)
    return replace(row, pairs=pairs, size=size.index())


def first_without(b: Builder, numbers: Tensor, count: Scalar) -> Scalar:
    """The first digit whose keys have `count` ones in front of them: UINT32."""
    start = [b.full([1], 0, UINT32), b.full([1], 0, UINT32)]
    wanted, last = count.cast(UINT32), numbers.shape[0] - 1

    def lacks(now: list[Tensor]) -> Scalar:
        digit, sofar = (element(b, x, [index(0)]) for x in now)
        return (sofar < wanted) & (digit < last)

    def further(now: list[Tensor]) -> list[Tensor]:
        digit, sofar = (element(b, x, [index(0)]) for x in now)
        more = element(b, numbers, [(digit + 1).index()])
        made = zip(now, (digit + 1, sofar + more), strict=True)
        return [with_element(b, x, [index(0)], new) for x, new in made]

    return element(b, repeat_while(b, start, lacks, further)[0], [index(0)])


def room_for(b: Builder, x: Tensor) -> Tensor:
    return Tensor(x.shape, x.dtype, b.empty(x.shape, x.dtype))


def in_order(b: Builder, row: Keys) -> Tensor:
    """Pairs in the order of their keys; two digits a trip, there and back."""
    kind = row.least.dtype
    trips = ((row.bits + (2 * DIGIT - 1)) / (2 * DIGIT)).index()

    def step(i: ir.Value, now: list[Tensor]) -> list[Tensor]:
        shift = from_index(i).cast(kind) * (2 * DIGIT)
        there = moved(b, replace(row, pairs=now[0]), now[1], shift)
        back = moved(b, replace(row, pairs=there), now[0], shift + DIGIT)
        return [back, there]

    return repeat(b, trips, [row.pairs, room_for(b, row.pairs)], step)[0]


def moved(b: Builder, row: Keys, into: Tensor, shift: Scalar) -> Tensor:
    """Pairs in the order of one digit; equal ones keep theirs."""

    def add(i: ir.Value, now: list[Tensor]) -> list[Tensor]:
        after = [(from_index(i) + 1).index()]
        both = element(b, now[0], after) + element(b, now[0], [i])
        return [with_element(b, now[0], after, both)]

    def move(i: ir.Value, now: list[Tensor]) -> list[Tensor]:
        digit = [row.digit(b, i, shift, DIGIT).index()]
        at = element(b, now[0], digit)
        return [
            with_element(b, now[0], digit, at + 1),
            row.copied(b, i, now[1], at.index()),
        ]

    starts = repeat(b, 1 << DIGIT, [counted(b, row, shift, DIGIT)], add)
    return repeat(b, row.size, [*starts, into], move)[1]


def each_row(
    b: Builder,
    rows: int,
    carried: Sequence[Tensor],
    step: Callable[[ir.Value, list[Tensor]], Sequence[Tensor]],
) -> list[Tensor]:
    """carried = step(row, carried) for every row; a loop of one trip is one, too.

    So what a step makes is memory of one kernel, and its numbers are known there.
    """
    start = b.full([1], 0, INT64)

    def goes_on(now: list[Tensor]) -> Scalar:
        return element(b, now[0], [index(0)]) < rows

    def trip(now: list[Tensor]) -> list[Tensor]:
        row = element(b, now[0], [index(0)])
        return [
            with_element(b, now[0], [index(0)], row + 1),
            *step(row.index(), now[1:]),
        ]

    return repeat_while(b, [start, *carried], goes_on, trip)[1:]
