"""f32, f64 and widened bf16, f16 (any vector unit): broadcast a row, multiply-add it.

Reference loop:

    for k...: for r in rows: for c in columns: acc[r][c] += left[r][k] * right[k][c]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from nanoloom.ir.access import index
from nanoloom.ir.mlir import ir, tensor, vector
from nanoloom.target.facts import Target
from nanoloom.vector.nanokernel.operands.convert_lhs import extended
from nanoloom.vector.nanokernel.operands.packed_panel import PackedPanel
from nanoloom.vector.nanokernel.operands.prefetch_lhs import with_lhs_prefetch
from nanoloom.vector.nanokernel.operands.vector_load_lhs import (
    Number,
    VectorLoadedRows,
    load_together,
)
from nanoloom.vector.nanokernel.reduction_loops import Innermost, Step, nest, unrolled
from nanoloom.vector.nanokernel.tile.instruction_order import in_order
from nanoloom.vector.nanokernel.tile.tile import (
    Tile,
    initial_number,
    maps,
    place_of,
    read_vector,
)

# Vectors of the right operand at loop variables, made as they are asked for; a number
# of the left one at those of a row of the tile, and the row's number, in every lane:
# None for what adds nothing.
Columns = Callable[[list[ir.Value]], Iterable[ir.Value]]
Factor = Callable[[list[ir.Value], int], ir.Value | None]


def accumulate(tile: Tile, target: Target) -> list[ir.Value]:
    """Emit the loops over the reduced dimensions; gives rows * vectors accumulators."""
    kind, columns = vector_kind(tile), right_columns(tile)
    number = numbers(tile, kind)
    if load_together(tile, kind, target):
        number = VectorLoadedRows(tile, kind, number).number
    return outer_products(tile, columns, number, start_values(tile, kind))


def right_columns(tile: Tile) -> Columns:
    """The right operand's vectors, as those of the sums."""
    kind, read = vector_kind(tile), right_reader(tile)

    def columns(ivs: list[ir.Value]) -> Iterator[ir.Value]:
        return (extended(kind, read(ivs, v)) for v in range(tile.plan.vectors))

    return columns


def vector_kind(tile: Tile) -> ir.VectorType:
    """Of the sums."""
    element = ir.RankedTensorType(tile.op.operation.operands[2].type).element_type
    return ir.VectorType.get([tile.lanes], element)


def numbers(tile: Tile, kind: ir.VectorType) -> Number:
    """The left operand's numbers, as those of a vector."""

    def read(ivs: list[ir.Value], row: int) -> ir.Value:
        del row
        number = extended(kind.element_type, left_number(tile, ivs))
        return vector.broadcast(kind, number)

    return read


def left_number(tile: Tile, ivs: list[ir.Value]) -> ir.Value:
    """The left operand's number at loop variables, as it lies there."""
    return tensor.extract(tile.left, place_of(maps(tile.op)[tile.shape.left], ivs))


def outer_products(
    tile: Tile,
    columns: Columns,
    number: Factor,
    start: list[ir.Value],
    innermost: Innermost | None = None,
) -> list[ir.Value]:
    """The loops: every row's number times all columns, added up from `start`.

    innermost: makes the last of the loops, in place of `unrolled`.
    """
    step = product_step(tile, columns, number, tile.row_indices)
    step = with_lhs_prefetch(tile, step)
    ivs, dims = tile.ivs(index(0), index(0)), tile.shape.reduced
    return nest(tile, dims, ivs, start, step, innermost or unrolled)


def product_step(
    tile: Tile, columns: Columns, number: Factor, rows: list[ir.Value]
) -> Step:
    """A step of the sums: the numbers of these rows of the tile times all columns."""
    vectors = tile.plan.vectors

    def column_after_column(
        ivs: list[ir.Value], sums: list[ir.Value]
    ) -> list[ir.Value]:
        left = [number(tile.at_row(ivs, row), r) for r, row in enumerate(rows)]
        made = list(sums)
        for v, column in enumerate(columns(ivs)):
            there = {
                r * vectors + v: wide for r, wide in enumerate(left) if wide is not None
            }
            products = [vector.fma(x, column, sums[n]) for n, x in there.items()]
            ordered = in_order(tile.plan, products) if products else []
            for n, sum_ in zip(there, ordered, strict=True):
                made[n] = sum_
        return made

    def row_after_row(ivs: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
        right = list(columns(ivs))
        made: list[ir.Value] = []
        for place, row in enumerate(rows):
            wide = number(tile.at_row(ivs, row), place)
            now = sums[len(made) : len(made) + len(right)]
            if wide is None:
                made += now
                continue
            products = [
                vector.fma(wide, column, sum_)
                for column, sum_ in zip(right, now, strict=True)
            ]
            made += in_order(
                tile.plan, products, *[wide] * tile.plan.keep_broadcast_live
            )
        return made

    return column_after_column if tile.plan.hold_lhs else row_after_row


def start_values(tile: Tile, kind: ir.VectorType) -> list[ir.Value]:
    """The accumulators before the first step."""
    result = tile.op.operation.operands[2]
    number = initial_number(result)
    if number is not None:
        count = tile.plan.rows * tile.plan.vectors
        return [vector.broadcast(kind, number)] * count
    out = maps(tile.op)[2]
    values: list[ir.Value] = []
    for r in range(tile.plan.rows):
        for v in range(tile.plan.vectors):
            ivs = tile.ivs(tile.row_index(r), index(v * tile.lanes))
            at = place_of(out, ivs)
            values.append(read_vector(result, at, tile.lanes, tile.mask(r, v)))
    return values


def right_reader(tile: Tile) -> Callable[[list[ir.Value], int], ir.Value]:
    """A function (loop variables, vector number) -> vector of the right operand."""
    return PackedPanel.of(tile).read if tile.plan.packed else tile.read_right
