"""Whether the steps of a loop may be computed in any order, or at once."""

from __future__ import annotations

from nanoloom.ir.mlir import ir, operations
from nanoloom_papers.affine.build import index_of_loop
from nanoloom_papers.affine.carrier import (
    LOAD,
    READS,
    STORE,
    WRITES,
    initial_values,
    is_known,
)
from nanoloom_papers.affine.location import (
    Index,
    Location,
    is_inside,
    location_of,
    root_of,
)


def is_parallel(loop: ir.Operation) -> bool:
    """Whether no step of a loop reaches what another one writes, and none is carried.

    What is written is known to be apart by one of its indices, which is the loop's
    times a number, and something that stays.
    """
    if initial_values(loop):
        return False
    inside = [op.operation for op in operations(loop, lambda _: True)][1:]
    if any(not is_known(op) for op in inside):
        return False
    accesses = [op for op in inside if op.name in READS or op.name in WRITES]
    roots = [root_of(buffer_of(op)) for op in accesses]
    written = {r for op, r in zip(accesses, roots, strict=True) if op.name in WRITES}
    if None in written or (written and None in roots):
        return False
    return all(
        is_apart_by(
            loop, [op for op, r in zip(accesses, roots, strict=True) if r == root]
        )
        for root in written
    )


def buffer_of(op: ir.Operation) -> ir.Value:
    return op.operands[READS[op.name] if op.name in READS else WRITES[op.name]]


def is_apart_by(loop: ir.Operation, accesses: list[ir.Operation]) -> bool:
    """Whether the accesses to a buffer are apart in different steps of a loop."""
    if any(op.name not in (LOAD, STORE) for op in accesses):
        return False
    locations = [location_of(op.opview) for op in accesses]
    if len({location.buffer for location in locations}) != 1:
        return False
    rank = len(locations[0].indices)
    return any(is_moved(loop, locations, place) for place in range(rank))


def is_moved(loop: ir.Operation, locations: list[Location], place: int) -> bool:
    """Whether one index of all of these differs from each step of a loop to others."""
    indices: set[Index] = {location.indices[place] for location in locations}
    if len(indices) != 1:
        return False
    (index,) = indices
    counter = index_of_loop(loop)
    others = index.values - {counter}
    fixed = not any(is_inside(value, loop) for value in others)
    return fixed and index.factor(counter) not in (None, 0)
