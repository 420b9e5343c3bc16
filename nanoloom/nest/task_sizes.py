"""Blocks of a stage's points that are a task each."""

from __future__ import annotations

from math import prod

from nanoloom.nest.granularity import TASK_ELEMENTS
from nanoloom.nest.statement import Statement

PADDED = 4  # times as much for a task that pads what it reads: edges are made twice


def numbers(stage: Statement) -> list[int]:
    """The extents of a stage, all of them known."""
    return [extent for extent in stage.extents if isinstance(extent, int)]


def task_sizes(
    sizes: list[int],
    parallel: list[int],
    known: dict[int, int],
    row: int = 1,
    wanted: int = TASK_ELEMENTS,
) -> tuple[int, ...]:
    """Tile sizes such that a task has about as many elements as wanted.

    known: those that are decided.  row: elements of one point of all parallel axes, if
    more than the others have.
    """
    tiles = [known.get(d, 0) for d in range(len(sizes))]
    inner = max(row, prod(sizes[d] for d in range(len(sizes)) if d not in parallel))
    inner *= prod(known.values())
    for d in reversed(parallel):
        if d in known:
            continue
        take = max(1, min(sizes[d], wanted // max(inner, 1)))
        if take < sizes[d] and sizes[d] % take:
            divisors = [t for t in range(take, 0, -1) if sizes[d] % t == 0]
            take = divisors[0] if divisors[0] * 2 >= take else take
        tiles[d] = take
        inner *= take
    return tuple(tiles)
