"""What a block of code has at hand: read, broadcast and computed once.

Points that are computed at once share what does not depend on where they differ.  It is
made once here, in place of as often as points use it and then looked for by LLVM.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from nanoloom.mlir import ir
from nanoloom.nest.extent import Lanes
from nanoloom.vector.lane_values import LaneValue


@dataclass(frozen=True)
class ValueCache:
    """Of one block of code, in which nothing is written before all is read.

    read: by the operand and its place.  made: by the operation of a body and what it
    takes.  wide: of a number, the vectors with it in so many lanes.  passed: what is
    told, behind each point, the places that it has read (software_pipelining.py).
    added: what is told of a point, by its number, whose sum is whole before those of
    others are.
    """

    read: dict[Hashable, LaneValue] = field(default_factory=dict)
    made: dict[Hashable, list[LaneValue]] = field(default_factory=dict)
    wide: dict[tuple[ir.Value, Lanes], ir.Value] = field(default_factory=dict)
    passed: Callable[[Sequence[Hashable]], None] | None = None
    added: Callable[[int, ir.Value], None] | None = None
