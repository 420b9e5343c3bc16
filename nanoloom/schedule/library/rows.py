"""Kernels without a nanokernel: rows in parallel, then vector loops."""

from __future__ import annotations

from nanoloom.kernels.program import Kernel
from nanoloom.kernels.structure import (
    Kind,
    Op,
    extents,
    inputs,
    is_generic,
    iterators,
    kind,
    map_dims,
    maps,
)
from nanoloom.mlir import ir, named
from nanoloom.schedule.language import Loops, Parallel, Schedule, Tile

TASK_ELEMENTS = 8192  # an elementwise task does about so much: a few microseconds


def by_rows(kernel: Kernel, module: ir.Module, last: Op) -> Schedule:
    """Rows in parallel, all producers computed inside, then vector loops."""
    sizes = extents(last)
    kinds = iterators(last)
    rows = shared_rows(kernel, module, len(sizes))
    parallel = [d for d in range(rows) if kinds[d] == "parallel"]
    if not parallel or 0 in sizes:
        return Schedule((Loops(),), "no rows to share")
    tiles = task_sizes(sizes, parallel)
    reason = "rows are independent: one task a few of them, producers fused"
    inner: tuple[Tile, ...] = ()
    several = len([op for op in named(module, "linalg.generic") if inputs(op)]) > 1
    if several and any(tiles[d] > 1 for d in parallel):
        ones = tuple(1 if d in parallel else 0 for d in range(len(sizes)))
        inner = (Tile(ones, ("all",)),)  # a row's temporaries stay in L1
    return Schedule((Parallel(tiles, ("all",)), *inner, Loops()), reason)


def shared_rows(kernel: Kernel, module: ir.Module, rank: int) -> int:
    """Leading dimensions that become tasks; the one that vectors run along does not."""
    rows = min(kernel.rows, rank)
    if kernel.root == Kind.ELEMENTWISE.value:
        return max(rows - 1, 1 if rank == 1 else 0)
    for op in named(module, "linalg.generic"):
        if is_generic(op) and kind(op) is Kind.REDUCTION and inputs(op):
            inner = innermost(op)
            if inner is not None and iterators(op)[inner] == "parallel":
                rows = min(rows, inner)  # a window or a column: vectors of results
    return rows


def innermost(op: Op) -> int | None:
    """The dimension that the largest input has innermost."""
    ranked = sorted(maps(op)[: len(inputs(op))], key=lambda m: -len(m.results))
    dims = map_dims(ranked[0])
    return dims[-1] if dims else None


def task_sizes(sizes: list[int], parallel: list[int]) -> tuple[int, ...]:
    """Tile sizes such that a task has about TASK_ELEMENTS elements."""
    tiles = [0] * len(sizes)
    inner = 1
    for d, size in enumerate(sizes):
        if d not in parallel:
            inner *= size
    for d in reversed(parallel):
        take = max(1, min(sizes[d], TASK_ELEMENTS // max(inner, 1)))
        if take < sizes[d] and sizes[d] % take:
            divisors = [t for t in range(take, 0, -1) if sizes[d] % t == 0]
            take = divisors[0] if divisors[0] * 2 >= take else take
        tiles[d] = take
        inner *= take
    return tuple(tiles)
