"""What a block of code has at hand: read, broadcast and computed once.

Points that are computed at once share what does not depend on where they differ.  It is
made once here, in place of as often as points use it and then looked for by LLVM.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from nanoloom.ir.access import Operand, apply, parts, written
from nanoloom.ir.mlir import ir
from nanoloom.nest.extent import Lanes
from nanoloom.vector.body_steps import BodyStep, steps_of
from nanoloom.vector.lane_values import LaneValue


@dataclass(frozen=True)
class Index:
    """Where something is read along one dimension of a buffer.

    known_as: equal for indices that are made alike.  number: what is added in it.
    """

    value: ir.Value
    known_as: Hashable
    number: int


@dataclass(frozen=True)
class ValueCache:
    """Of one block of code, in which nothing is written before all is read.

    read: by the operand and its place.  made: by the operation of a body and what it
    takes.  wide: of a number, the vectors with it in so many lanes.  passed: what is
    told, behind each point, the places that it has read (software_pipelining.py).
    added: what is told of a point, by its number, whose sum is whole before those of
    others are.  found: indices, by what they are computed from: 7 x 7 taps
    for 14 points of a row read 686 places, which are of 7 and 98 indices.
    """

    read: dict[Hashable, LaneValue] = field(default_factory=dict)
    made: dict[Hashable, list[LaneValue]] = field(default_factory=dict)
    wide: dict[tuple[ir.Value, Lanes], ir.Value] = field(default_factory=dict)
    passed: Callable[[Sequence[Hashable]], None] | None = None
    added: Callable[[int, ir.Value], None] | None = None
    found: dict[Hashable, Index] = field(default_factory=dict)
    bodies: dict[Hashable, list[BodyStep]] = field(default_factory=dict)

    def steps(self, block: ir.Block, sums: tuple[ir.Value, ...]) -> list[BodyStep]:
        """The operations of a body (body_steps.py)."""
        key = block, bool(sums)
        if key not in self.bodies:
            self.bodies[key] = steps_of(block, sums)
        return self.bodies[key]

    def indices(self, x: Operand, ivs: Sequence[ir.Value]) -> list[Index]:
        """An operand's indices for these values of the loop dimensions."""
        if x.is_within:  # each is counted from where its image begins
            return [index_of(at) for at in x.indices(ivs)]
        made: list[Index] = []
        for expr, dims in x.terms:
            key = (expr, *[ivs[dim] for dim in dims])
            if key not in self.found:
                self.found[key] = index_of(apply(expr, ivs))
            made.append(self.found[key])
        return made


def index_of(value: ir.Value) -> Index:
    return Index(value, written(value), parts(value)[1])
