"""A short row in order by ranks: of each key, how many come before it.

    row      9 4 7 4
    ranks    3 0 2 1     a key that is the same comes before where it stands before

Vectors of keys are compared with every key of the row: no step waits for what another
one has found, and none of them branches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.indexing import INT64
from nanoloom.linalg.builder.key_row import Row
from nanoloom.linalg.builder.lanes import counting, each, lanes_of, load, splat, stored
from nanoloom.linalg.builder.numbered_loops import State, repeat
from nanoloom.linalg.builder.pairs import with_pair
from nanoloom.linalg.builder.scalar import Scalar, constant, from_index, select
from nanoloom.linalg.builder.slices import element, index, with_element
from nanoloom.linalg.builder.tensor import Tensor

KEYS, RANKS = 0, 1  # in the memory for both


def sorted_by_ranks(b: Builder, row: Row, size: Scalar, into: Tensor) -> Tensor:
    """The first of a row's `size` keys in `into` [sides, most + 1, 2], beside their
    places, and one of the others behind them.  Within a loop only."""
    shape = 2, row.x.shape[-1] + lanes_of(row.kind)
    memory = Tensor(shape, row.kind, b.empty(shape, row.kind))
    ranked = Ranking(row, size).ranks(b, memory)
    behind = constant(0, INT64) + from_index(index(into.shape[1] - 1))

    def put(i: ir.Value, now: list[Tensor], _: list[Scalar]) -> State:
        rank = element(b, ranked, [index(RANKS), i]).cast(INT64)
        key = element(b, ranked, [index(KEYS), i])
        at = rank.minimum(behind).index()
        return [with_pair(b, now[0], at, key, from_index(i).cast(row.kind))], []

    return repeat(b, size.index(), ([into], []), put)[0][0]


@dataclass(frozen=True)
class Ranking:
    """The first `size` keys of a row."""

    row: Row
    size: Scalar

    def ranks(self, b: Builder, memory: Tensor) -> Tensor:
        """Keys and their ranks, [2, n + lanes]: what is behind them is nothing."""
        lanes = lanes_of(self.row.kind)
        blocks = (self.size + (lanes - 1)) / lanes

        def copy(i: ir.Value, now: list[Tensor], _: list[Scalar]) -> State:
            key = self.row.at(b, from_index(i))
            return [with_element(b, now[0], [index(KEYS), i], key)], []

        def rank(i: ir.Value, now: list[Tensor], _: list[Scalar]) -> State:
            begin = from_index(i) * lanes
            found = self.of_block(b, now[0], begin)
            return [stored(b, found, now[0], [index(RANKS), begin.index()])], []

        filled = repeat(b, self.size.index(), ([memory], []), copy)
        return repeat(b, blocks.index(), filled, rank)[0][0]

    def of_block(self, b: Builder, memory: Tensor, begin: Scalar) -> Scalar:
        """How many keys come before each of a vector from `begin` on."""
        kind = self.row.kind
        mine = load(b, memory, [index(KEYS), begin.index()])
        own, one = splat(begin.cast(kind)) + counting(kind), each(1, kind)
        end = (begin + lanes_of(kind)).minimum(self.size)

        def counted(
            first: Scalar,
            last: Scalar,
            sofar: Scalar,
            is_before: Callable[[Scalar, Scalar], Scalar],
        ) -> Scalar:
            def compare(i: ir.Value, _: list[Tensor], now: list[Scalar]) -> State:
                place = first + from_index(i)
                other = splat(element(b, memory, [index(KEYS), place.index()]))
                before = is_before(other, splat(place.cast(kind)))
                return [], [select(before, now[0] + one, now[0])]

            return repeat(b, (last - first).index(), ([], [sofar]), compare)[1][0]

        def among(other: Scalar, place: Scalar) -> Scalar:
            return (other < mine) | (other.equal(mine) & (place < own))

        zero = constant(0, INT64)
        made = counted(zero, begin, each(0, kind), lambda other, _: other <= mine)
        made = counted(begin, end, made, among)
        return counted(end, self.size, made, lambda other, _: other < mine)
