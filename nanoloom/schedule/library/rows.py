"""Kernels without a nanokernel: rows in parallel, then vector loops."""

from __future__ import annotations

from math import prod

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
SQUARES = 64  # lanes of the widest vector: as many rows of squares have room for any


def by_rows(kernel: Kernel, module: ir.Module, last: Op) -> Schedule:
    """Rows in parallel, all producers computed inside, then vector loops."""
    sizes = extents(last)
    kinds = iterators(last)
    rows = shared_rows(kernel, module, len(sizes))
    parallel = [d for d in range(rows) if kinds[d] == "parallel"]
    if not parallel or 0 in sizes:
        return Schedule((Loops(),), "no rows to share")
    several = len([op for op in named(module, "linalg.generic") if inputs(op)]) > 1
    blocks = {} if several else turned_blocks(last, sizes)
    if blocks:
        reason = "an operand is turned: one task some squares of it"
        tiles = task_sizes(sizes, list(range(len(sizes))), blocks)
        return Schedule((Parallel(tiles, ("all",)), Loops()), reason)
    tiles = task_sizes(sizes, parallel, {})
    reason = "rows are independent: one task a few of them, producers fused"
    inner: tuple[Tile, ...] = ()
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


def turned_blocks(last: Op, sizes: list[int]) -> dict[int, int]:
    """Tile sizes of the result's innermost dimension and of an operand's, if another.

    {} if no operand lies along another dimension, or if this is no elementwise kernel.
    """
    dim = len(sizes) - 1
    if not is_generic(last) or kind(last) is not Kind.ELEMENTWISE:
        return {}
    for indexing in maps(last)[: len(inputs(last))]:
        *outer, inner = map_dims(indexing) or [None]
        if dim in outer and inner is not None:
            columns = block_size(sizes[dim], TASK_ELEMENTS // SQUARES)
            rows = block_size(sizes[inner], max(SQUARES, TASK_ELEMENTS // columns))
            more = max(columns, TASK_ELEMENTS // rows)
            return {inner: rows, dim: block_size(sizes[dim], more)}
    return {}


def block_size(size: int, wanted: int) -> int:
    """Whole squares, all if it is not much more than wanted."""
    if size < 2 * wanted:
        return size
    wanted -= wanted % SQUARES
    even = range(wanted, 2 * wanted, SQUARES // 4)
    return next((block for block in even if size % block == 0), wanted)


def task_sizes(
    sizes: list[int], parallel: list[int], known: dict[int, int]
) -> tuple[int, ...]:
    """Tile sizes such that a task has about TASK_ELEMENTS elements.

    known: those that are decided.
    """
    tiles = [known.get(d, 0) for d in range(len(sizes))]
    inner = prod(known.values())
    for d, size in enumerate(sizes):
        if d not in parallel:
            inner *= size
    for d in reversed(parallel):
        if d in known:
            continue
        take = max(1, min(sizes[d], TASK_ELEMENTS // max(inner, 1)))
        if take < sizes[d] and sizes[d] % take:
            divisors = [t for t in range(take, 0, -1) if sizes[d] % t == 0]
            take = divisors[0] if divisors[0] * 2 >= take else take
        tiles[d] = take
        inner *= take
    return tuple(tiles)
