"""f32, f64 and widened bf16, f16 (any vector unit): broadcast a row, multiply-add it.

Reference loop:

    for k...: for r in rows: for c in columns: acc[r][c] += left[r][k] * right[k][c]
"""

from __future__ import annotations

from collections.abc import Callable

from nanoloom.ir.access import index
from nanoloom.ir.linalg_query import maps
from nanoloom.ir.mlir import ir, tensor, vector
from nanoloom.target.facts import Target
from nanoloom.vector.nanokernel import k_groups
from nanoloom.vector.nanokernel.operands.convert_lhs import extended
from nanoloom.vector.nanokernel.operands.packed_panel import PackedPanel
from nanoloom.vector.nanokernel.operands.prefetch_lhs import with_lhs_prefetch
from nanoloom.vector.nanokernel.operands.vector_load_lhs import (
    Number,
    VectorLoadedRows,
    load_together,
)
from nanoloom.vector.nanokernel.reduction_loops import (
    Innermost,
    Step,
    nest,
    start_values,
    unrolled,
    vector_kind,
)
from nanoloom.vector.nanokernel.tile.tile import Tile, place_of

# A vector of the right operand, by its number, at loop variables.
Column = Callable[[list[ir.Value], int], ir.Value]


def accumulate(tile: Tile, target: Target) -> list[ir.Value]:
    """Emit the loops over the reduced dimensions; gives rows * vectors accumulators."""
    kind = vector_kind(tile)
    number = numbers(tile, kind)
    if load_together(tile, kind, target):
        number = VectorLoadedRows(tile, kind, number).number
    return outer_products(tile, right_column(tile), number, start_values(tile, kind))


def right_column(tile: Tile) -> Column:
    """The right operand's vectors, as those of the sums."""
    kind = vector_kind(tile)
    read = PackedPanel.of(tile).read if tile.plan.packed else tile.read_right
    return lambda ivs, v: extended(kind, read(ivs, v))


def numbers(tile: Tile, kind: ir.VectorType) -> Number:
    """The left operand's numbers, as those of a vector."""
    indexing = maps(tile.op)[tile.shape.left]

    def read(ivs: list[ir.Value], row: int) -> ir.Value:
        del row
        number = tensor.extract(tile.left, place_of(indexing, ivs))
        return vector.broadcast(kind, extended(kind.element_type, number))

    return read


def outer_products(
    tile: Tile,
    column: Column,
    number: Number,
    start: list[ir.Value],
    innermost: Innermost = unrolled,
) -> list[ir.Value]:
    """The loops: every row's number times all columns, added up from `start`.

    innermost: makes the last of the loops.
    """
    step = product_step(tile, column, number, tile.row_indices)
    step = with_lhs_prefetch(tile, step)
    ivs, dims = tile.ivs(index(0), index(0)), tile.shape.reduced
    return nest(tile, dims, ivs, start, step, innermost)


def product_step(
    tile: Tile, column: Column, number: Number, rows: list[ir.Value]
) -> Step:
    """A step of the sums: the numbers of these rows of the tile times all columns."""

    def left(row: k_groups.Row) -> ir.Value:
        return number(row.ivs, row.place_in_tile)

    def right(ivs: list[ir.Value], step: ir.Value, count: int, v: int) -> ir.Value:
        del step, count
        return column(ivs, v)

    def product(sum_: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
        return vector.fma(left, right, sum_)

    step = k_groups.Step(1, ((left, k_groups.itself),), product, right=right)
    return k_groups.Sums(tile, step, rows).whole
