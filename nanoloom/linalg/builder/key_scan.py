"""The few keys of a row that are wanted: most blocks are left out by their least key.

for block:  least = min(16 keys)      vectors of LLVM's
    if wanted(least):  for key in block:  if wanted(key): take(key)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.key_row import Row
from nanoloom.linalg.builder.lanes import lanes_of, least
from nanoloom.linalg.builder.numbered_loops import State, repeat, repeat_while, when
from nanoloom.linalg.builder.scalar import Scalar, constant, from_index
from nanoloom.linalg.builder.tensor import Tensor

BLOCK = 32
Carried = tuple[list[Tensor], list[Scalar]]


@dataclass(frozen=True)
class Scan:
    """Keys of a row from `first` to `end`, INT64.

    wanted(key, state): of a key also where it is of a larger one.  take(key, place,
    state): the new state.
    """

    row: Row
    first: Scalar
    end: Scalar
    wanted: Callable[[Scalar, Carried], Scalar]
    take: Callable[[Scalar, Scalar, Carried], State]

    def run(self, b: Builder, start: State) -> Carried:
        """The state behind all keys; within a loop only."""

        def goes_on(_: list[Tensor], numbers: list[Scalar]) -> Scalar:
            return numbers[0] < self.end

        def block(now: list[Tensor], numbers: list[Scalar]) -> State:
            begin, *others = numbers
            may = self.wanted(self.least(b, begin), (now, others))

            def each(now: list[Tensor], numbers: list[Scalar]) -> State:
                return self.one_by_one(b, begin, (now, numbers))

            now, others = when(b, may, (now, others), each)
            return now, [begin + BLOCK, *others]

        tensors, numbers = start
        found = repeat_while(b, (tensors, [self.first, *numbers]), goes_on, block)
        return found[0], found[1][1:]

    def least(self, b: Builder, begin: Scalar) -> Scalar:
        """The least key of a block; 0 of one that is not whole."""
        kind = self.row.kind
        lanes = lanes_of(kind)

        def whole(_: list[Tensor], __: list[Scalar]) -> State:
            parts = [self.row.lanes(b, begin + n) for n in range(0, BLOCK, lanes)]
            return [], [least(reduce(Scalar.minimum, parts))]

        is_whole = begin + BLOCK <= self.end
        return when(b, is_whole, ([], [constant(0, kind)]), whole)[1][0]

    def one_by_one(self, b: Builder, begin: Scalar, start: Carried) -> State:
        def step(i: ir.Value, now: list[Tensor], numbers: list[Scalar]) -> State:
            place, state = begin + from_index(i), (now, numbers)
            key = self.row.at(b, place)

            def put(now: list[Tensor], numbers: list[Scalar]) -> State:
                return self.take(key, place, (now, numbers))

            return when(b, self.wanted(key, state), state, put)

        number = (self.end - begin).minimum(BLOCK)
        return repeat(b, number.index(), start, step)
