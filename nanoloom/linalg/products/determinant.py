"""Det: Gaussian elimination with row pivots, a loop over columns of all matrices."""

from __future__ import annotations

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder, computed_as
from nanoloom.linalg.builder.indexing import INT64, dims, map_generic, position
from nanoloom.linalg.builder.loops import repeat
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, from_index, select
from nanoloom.linalg.builder.slices import read_at
from nanoloom.linalg.builder.tensor import Tensor


def det(b: Builder, node: Node) -> Tensor:
    """The determinant of each matrix [..., n, n]."""
    x, shape = node.input(0), node.output_shapes[0]
    size, wide = x.shape[-1], computed_as(x.dtype)
    if x.size == 0:
        return b.full(shape, 1 if size == 0 else 0, x.dtype)
    count = x.size // (size * size)
    matrices = b.cast(b.reshape(x, (count, size, size)), wide)

    def step(k: ir.Value, carried: list[Tensor]) -> list[Tensor]:
        rows, product = carried
        pivot, row = largest_below(b, read_at(b, rows, 2, k), k)
        left = eliminated(b, rows, pivot, row, k)

        def times(sofar: Scalar, value: Scalar, at: Scalar) -> Scalar:
            return sofar * select(at.equal(from_index(k)), value, -value)

        return [left, b.elementwise(times, product, pivot, row)]

    start = b.full((count,), 1, wide)
    made = repeat(b, size, [matrices, start], step)[1]
    return b.reshape(b.cast(made, x.dtype), shape)


def largest_below(b: Builder, column: Tensor, k: ir.Value) -> tuple[Tensor, Tensor]:
    """The element of largest size among rows k and below, and its row: [count] each."""
    count = column.shape[0]
    value, row = b.full((count,), 0, column.dtype), b.full((count,), -1, INT64)

    def body(element: Scalar, top: Scalar, at: Scalar) -> list[Scalar]:
        here = position(1)
        better = (at < 0) | (element.absolute() > top.absolute()) | element.is_nan()
        take = (here >= from_index(k)) & better
        return [select(take, element, top), select(take, here, at)]

    along = dims(2, [0])
    found = b.generic(
        [(column, dims(2, [0, 1]))], [(value, along), (row, along)],
        [PARALLEL, REDUCTION], body,
    )  # fmt: skip
    return found[0], found[1]


def eliminated(
    b: Builder, rows: Tensor, pivot: Tensor, row: Tensor, k: ir.Value
) -> Tensor:
    """Rows k and `row` exchanged, then multiples of row k taken from those below."""
    source, along = b.value(rows), dims(3, [0])

    def body(value: Scalar, at: Scalar) -> Scalar:
        here, turn, column = position(1), from_index(k), position(2)
        moved = select(here.equal(at), turn, select(here.equal(turn), at, here))
        own = b.load(source, rows.dtype, [position(0), moved, column])
        top = b.load(source, rows.dtype, [position(0), at, column])
        first = b.load(source, rows.dtype, [position(0), moved, turn])
        share = select(value.equal(0), first * 0, first / value)
        return select(here > turn, own - share * top, own)

    return map_generic(b, rows.shape, rows.dtype, [(pivot, along), (row, along)], body)


OPERATORS = {"Det": det}
