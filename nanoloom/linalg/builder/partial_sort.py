"""The first few keys of a row in order, by the least key of each block of it.

    row      9 4 7 | 3 8 3 | 5 6 9      blocks, the wider the fewer keys are taken
    minima     4       3       5        the least one is the first of the row
    minima     4       3       5        without it: 3 again, behind its place
    minima     4       8       5

What comes next in a block is the least key behind the last one taken, where keys are
in the order of their places if they are equal: nothing is marked.  A key with all bits
set is the largest; a block whose least one it is has nothing to give, and those that
are wanted all the same are looked for at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.indexing import INT64
from nanoloom.linalg.builder.key_row import Row
from nanoloom.linalg.builder.lanes import counting, each, lanes_of, least, splat, stored
from nanoloom.linalg.builder.numbered_loops import State, repeat, repeat_while, when
from nanoloom.linalg.builder.pairs import with_pair
from nanoloom.linalg.builder.scalar import Scalar, constant, from_index, select
from nanoloom.linalg.builder.slices import element, index, with_element
from nanoloom.linalg.builder.tensor import Tensor

MINIMUM, PLACE = 0, 1  # of a block
LEAST_LANE = 8  # vectors that are looked at while the least lane of one is found


@dataclass(frozen=True)
class Best:
    """The least key and its place, of one or of lanes; all bits set are none."""

    key: Scalar
    place: Scalar

    def or_later(self, key: Scalar, place: Scalar) -> Best:
        """The better of two, of which the other one is behind it."""
        better = key < self.key
        return Best(select(better, key, self.key), select(better, place, self.place))

    def without(self, key: Scalar, place: Scalar) -> Scalar:
        """A key, or all bits set where it does not stand behind this one."""
        none = each if isinstance(key.value.type, ir.VectorType) else constant
        behind = (key > self.key) | (key.equal(self.key) & (place > self.place))
        return select(behind, key, none(-1, key.dtype))

    def splat(self) -> Best:
        return Best(splat(self.key), splat(self.place))


def best_of(
    b: Builder, row: Row, begin: Scalar, end: Scalar, behind: Best | None = None
) -> Best:
    """Of the keys from `begin` to `end`, those behind a certain one: vectors first."""
    kind, lanes = row.kind, lanes_of(row.kind)
    last = None if behind is None else behind.splat()
    none = each(-1, kind)

    def some(i: ir.Value, _: list[Tensor], now: list[Scalar]) -> State:
        mine = row.lanes(b, begin + from_index(i) * lanes)
        mine = mine if last is None else last.without(mine, now[2])
        found = Best(*now[:2]).or_later(mine, now[2])
        return [], [found.key, found.place, now[2] + each(lanes, kind)]

    def one(i: ir.Value, _: list[Tensor], now: list[Scalar]) -> State:
        place = begin + whole * lanes + from_index(i)
        mine, at = row.at(b, place), place.cast(kind)
        mine = mine if behind is None else behind.without(mine, at)
        found = Best(*now).or_later(mine, at)
        return [], [found.key, found.place]

    whole = (end - begin) / lanes
    start = [none, none, splat(begin.cast(kind)) + counting(kind)]
    _, (keys, places, _) = repeat(b, whole.index(), ([], start), some)
    first = least(keys)
    place = least(select(keys.equal(splat(first)), places, none))
    rest = (end - begin - whole * lanes).index()
    _, found = repeat(b, rest, ([], [first, place]), one)
    return Best(found[0], found[1])


@dataclass(frozen=True)
class Blocks:
    """The first `size` keys of a row in blocks of `width`, and the best of each.

    Memory for the best: [2, n + lanes], with all bits set behind the last block.
    """

    row: Row
    size: Scalar
    width: Scalar

    @property
    def count(self) -> Scalar:
        return (self.size + (self.width - 1)) / self.width

    def best(self, b: Builder, block: Scalar, behind: Best | None = None) -> Best:
        begin = block * self.width
        end = (begin + self.width).minimum(self.size)
        return best_of(b, self.row, begin, end, behind)

    def minima(self, b: Builder) -> Tensor:
        kind, lanes = self.row.kind, lanes_of(self.row.kind)
        shape = 2, self.row.x.shape[-1] + lanes
        made = Tensor(shape, kind, b.empty(shape, kind))

        def block(i: ir.Value, now: list[Tensor], _: list[Scalar]) -> State:
            return [noted(b, now[0], i, self.best(b, from_index(i)))], []

        (made,), _ = repeat(b, self.count.index(), ([made], []), block)
        for part in (MINIMUM, PLACE):
            at = [index(part), self.count.index()]
            made = stored(b, each(-1, kind), made, at)
        return made

    def first(self, b: Builder, minima: Tensor) -> tuple[Scalar, Scalar]:
        """The least of the minima, and its block."""
        lanes = lanes_of(self.row.kind)
        keys = Row(minima, (index(MINIMUM),), self.row.kind)
        end = (self.count + (lanes - 1)) / lanes * lanes
        found = best_of(b, keys, constant(0, INT64), end)
        return found.key, found.place


def noted(b: Builder, minima: Tensor, block: ir.Value, best: Best) -> Tensor:
    minima = with_element(b, minima, [index(MINIMUM), block], best.key)
    return with_element(b, minima, [index(PLACE), block], best.place)


def partly_sorted(
    b: Builder, row: Row, size: Scalar, count: Scalar, into: Tensor
) -> Tensor:
    """The first `count` of a row's `size` keys in `into` [1, most, 2], beside their
    places.  Within a loop only."""
    blocks = Blocks(row, size, width_of(size, count, row.kind))
    minima = blocks.minima(b)

    def goes_on(_: list[Tensor], now: list[Scalar]) -> Scalar:
        return (now[0] < count) & now[1].differs(-1)

    def take(tensors: list[Tensor], now: list[Scalar]) -> State:
        found, key, block = now
        at = [index(PLACE), block.index()]
        best = Best(key, element(b, tensors[1], at))
        pairs = with_pair(b, tensors[0], found.index(), best.key, best.place)

        def look(tensors: list[Tensor], _: list[Scalar]) -> State:
            later = blocks.best(b, block.cast(INT64), best)
            minima = noted(b, tensors[0], block.index(), later)
            return [minima], [*blocks.first(b, minima)]

        state = [tensors[1]], now[1:]
        (minima,), first = when(b, found + 1 < count, state, look)
        return [pairs, minima], [found + 1, *first]

    start = [constant(0, INT64), *blocks.first(b, minima)]
    (pairs, _), (found, *_) = repeat_while(b, ([into, minima], start), goes_on, take)
    return with_last(b, row, count, pairs, found)


def with_last(
    b: Builder, row: Row, count: Scalar, pairs: Tensor, found: Scalar
) -> Tensor:
    """Pairs with keys that have all bits set, as many as lack."""

    def lacks(_: list[Tensor], now: list[Scalar]) -> Scalar:
        return now[0] < count

    def look(tensors: list[Tensor], now: list[Scalar]) -> State:
        found, place = now
        mine = row.at(b, place)

        def put(tensors: list[Tensor], now: list[Scalar]) -> State:
            at, here = now[0].index(), place.cast(row.kind)
            return [with_pair(b, tensors[0], at, mine, here)], [now[0] + 1]

        made, (found,) = when(b, mine.equal(-1), (tensors, [found]), put)
        return made, [found, place + 1]

    start = [found, constant(0, INT64)]
    return repeat_while(b, ([pairs], start), lacks, look)[0][0]


def width_of(size: Scalar, count: Scalar, kind: np.dtype) -> Scalar:
    """Of a block: a power of two, and no less than a vector.

    The least of each block is looked for once, and for each key that is taken one block
    and these least ones are looked through.
    """
    lanes = lanes_of(kind)
    square = size + size * (LEAST_LANE * lanes) / count.maximum(1)
    bits = constant(64, INT64) - square.math("ctlz")
    return constant(1, INT64) << (bits / 2).maximum(lanes.bit_length() - 1)
