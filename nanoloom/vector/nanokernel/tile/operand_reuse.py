"""Which tiles of a task read the same part of an operand: the loops around tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from nanoloom.ir.access import add, index
from nanoloom.ir.linalg_query import Op
from nanoloom.ir.mlir import ir, scf
from nanoloom.vector.counted_loops import (
    bounds,
    counted_loops,
    round_of,
    trip_count,
)
from nanoloom.vector.nanokernel.tile.task import is_within


@dataclass(frozen=True)
class Visit:
    """A tile's visit to its part of an operand.

    again: 0 in the first tile that reads the part.  place: the part's number among
    `places`, of those that tiles come back to.
    """

    again: ir.Value
    place: ir.Value
    places: int


def visit_of(op: Op, value: ir.Value) -> Visit:
    """The visit of an operation in a task's loops (on tensors).

    Loops outside of all that come back bring other parts: those take the same places.
    """
    loops = tile_loops(op)
    other = [changes(value, loop) for loop in loops]
    first = other.index(False) if False in other else len(loops)
    again = index(0)
    for loop, changed in zip(loops, other, strict=True):
        if not changed:
            again = add(again, loop.induction_variable)
    inner = tuple(x for x, o in zip(loops[first:], other[first:], strict=True) if o)
    return Visit(again, round_of(inner), prod(trip_count(loop) for loop in inner))


def tile_loops(op: Op, *, open_ends: bool = False) -> tuple[scf.ForOp, ...]:
    """The loops over a task's tiles around an operation, outermost first.

    Those that stand inside of all that do not begin at 0, as one that was peeled.
    open_ends: also up to a size that is known at run time.
    """
    loops = counted_loops(op.operation.block, open_ends=open_ends)
    while any(bounds(loop)[0] for loop in loops):
        loops = loops[1:]
    return loops


def changes(value: ir.Value, loop: scf.ForOp) -> bool:
    """Whether a value may differ from one round of a loop to the next."""
    if not is_within(value, loop.operation):
        return False
    owner = value.owner
    if not isinstance(owner, ir.Block):
        return any(changes(x, loop) for x in needed(owner))
    around = owner.owner.operation
    if (
        around == loop.operation
        or around.name != "scf.for"
        or value != owner.arguments[0]
    ):
        return True
    return any(changes(bound, loop) for bound in list(around.operands)[:3])


def needed(op: ir.Operation) -> Iterator[ir.Value]:
    """The operands of an operation, and what its regions read from outside of it."""
    yield from op.operands
    for region in op.regions:
        for block in region:
            for inner in block.operations:
                values = needed(inner.operation)
                yield from (x for x in values if not is_within(x, op))
