"""Sums over groups of steps: what the families for narrow numbers have in common.

Reference loop, with G numbers of k in a lane:

    for k in 0..K step G: for r in rows: for c in columns:
        acc[r][c] += sum over g of left[r][k + g] * right[k + g][c]

Packed panels hold right[k..k + G][c] together and zeros behind K; rows that are not
packed are interleaved in registers.  The left operand is never read behind K.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nanoloom.ir.access import add, coefficient, index, multiply
from nanoloom.ir.linalg_query import dims_of, maps
from nanoloom.ir.mlir import ir, tensor, vector
from nanoloom.linalg.builder.pointwise import itself
from nanoloom.target.instructions.instruction import LANE
from nanoloom.vector.guard import Bounds
from nanoloom.vector.nanokernel import reduction_loops
from nanoloom.vector.nanokernel.instructions import in_lanes, word_of
from nanoloom.vector.nanokernel.operands.packed_panel import PackedPanel
from nanoloom.vector.nanokernel.reduction_loops import (
    NO_LIMITS,
    nest,
    start_values,
    unrolled,
    vector_kind,
)
from nanoloom.vector.nanokernel.tile.instruction_order import in_order
from nanoloom.vector.nanokernel.tile.tile import Tile, place_of, read_vector, zero_of
from nanoloom.vector.tile_points import with_value
from nanoloom.vector.widths import filled


@dataclass(frozen=True)
class Row:
    """One group of the left operand: numbers k to k + count of a row, zeros behind.

    place_in_tile: the row's.
    """

    tile: Tile
    group: int
    ivs: list[ir.Value]
    count: int
    place_in_tile: int

    def number(self, g: int) -> ir.Value:
        """The scalar left[r][k + g]."""
        element = ir.RankedTensorType(self.tile.left.type).element_type
        if g >= self.count:
            return zero_of(element)
        return tensor.extract(self.tile.left, self.place(g))

    def alone(self, g: int) -> ir.Value:
        """The same as a vector of one."""
        return read_vector(self.tile.left, self.place(g), 1, None)

    def place(self, g: int) -> list[ir.Value]:
        ivs, dim = list(self.ivs), self.tile.shape.reduced[-1]
        ivs[dim] = add(ivs[dim], index(g))
        return place_of(left_map(self.tile), ivs)

    def together(self) -> ir.Value:
        """All of the group as one short vector: one load if it lies together."""
        indexing, dim = left_map(self.tile), self.tile.shape.reduced[-1]
        if self.count == self.group and lies_along(indexing, dim):
            return read_vector(self.tile.left, self.place(0), self.group, None)
        element = ir.RankedTensorType(self.tile.left.type).element_type
        numbers = [self.number(g) for g in range(self.group)]
        return vector.from_elements(ir.VectorType.get([self.group], element), numbers)


# A group in registers, one or some.
Prepare = Callable[[Any], Any]
PrepareRow = Callable[[Row], Any]
Product = Callable[[ir.Value, Any, Any], ir.Value]
RightReader = Callable[[list[ir.Value], ir.Value, int, int], Any]


def nothing(sum_: ir.Value, row: Row) -> ir.Value:
    """What most families add up of rows alone."""
    del row
    return sum_


@dataclass(frozen=True)
class Step:
    """How a family multiplies one group.

    parts: pairs of functions that make of a left group, and of lanes * group numbers of
    the right operand, what `product(sums, left, right)` takes; a product for each pair.
    most: groups in an innermost loop, if it is cut (packed_panel.py).  right: reads the
    right operand, None for `right_reader`.  alone: a row's own sum with its group.
    by_row: the products of a row by all columns, where their order matters.
    """

    group: int
    parts: tuple[tuple[PrepareRow, Prepare], ...]
    product: Product
    most: int = 0
    right: RightReader | None = None
    alone: Callable[[ir.Value, Row], ir.Value] = nothing
    by_row: Callable[[list[ir.Value], Any, list[Any]], list[ir.Value]] | None = None

    def of_row(
        self, sums: list[ir.Value], left: Any, rights: list[Any]
    ) -> list[ir.Value]:
        """The sums of a row with its products by all columns."""
        if self.by_row is not None:
            return self.by_row(sums, left, rights)
        pairs = zip(sums, rights, strict=True)
        return [self.product(sum_, left, right) for sum_, right in pairs]


def accumulate(
    tile: Tile, step: Step, start: list[ir.Value] | None = None
) -> list[ir.Value]:
    """Emit the loops over the reduced dimensions; gives rows * vectors accumulators.

    start: their values before the first step, default those of the result.
    """
    ivs = tile.ivs(index(0), index(0))
    made = Sums(tile, step, tile.row_indices)
    return made.through(tile.shape.reduced, ivs, start or starts(tile))


def starts(tile: Tile) -> list[ir.Value]:
    """The accumulators as the result has them."""
    return start_values(tile, vector_kind(tile))


class Sums:
    """Emits the loops of one tile, of these rows of it, by groups of steps.

    Behind the sums of rows by columns stand those of rows alone, if a step has such.
    """

    def __init__(self, tile: Tile, step: Step, rows: list[ir.Value]) -> None:
        self.tile, self.step, self.rows = tile, step, rows
        self.right = step.right or right_reader(tile, step.group, step.most)

    def through(
        self,
        dims: Sequence[int],
        ivs: list[ir.Value],
        sums: list[ir.Value],
        limits: Mapping[int, Bounds] = NO_LIMITS,
    ) -> list[ir.Value]:
        """Loops over these dimensions."""
        group = self.step.group
        return nest(
            self.tile, dims, ivs, sums, self.whole, self.innermost, group, limits
        )

    def innermost(
        self,
        extent: int,
        steps: int,
        dim: int,
        ivs: list[ir.Value],
        sums: list[ir.Value],
        step: reduction_loops.Step,
    ) -> list[ir.Value]:
        """The last dimension (sum_loops.Innermost), in groups; then a part of one."""
        whole, rest = divmod(extent, self.step.group)
        sums = unrolled(whole, steps, dim, ivs, sums, step)
        return self.products(ivs, index(whole), rest, sums) if rest else sums

    def whole(self, ivs: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
        """A whole group; its number is the last dimension's variable."""
        return self.products(ivs, ivs[self.depth], self.step.group, sums)

    @property
    def depth(self) -> int:
        return self.tile.shape.reduced[-1]

    def row(self, r: int, ivs: list[ir.Value], number: ir.Value, count: int) -> Row:
        group, here = self.step.group, [*ivs]
        here[self.depth] = multiply(number, index(group))
        if self.tile.row is not None:
            here[self.tile.row] = self.rows[r]
        return Row(self.tile, group, here, count, r)

    def products(
        self, ivs: list[ir.Value], number: ir.Value, count: int, sums: list[ir.Value]
    ) -> list[ir.Value]:
        """One group, `count` steps of it inside: all rows by all columns."""
        plan, many = self.tile.plan, len(self.rows) * self.tile.plan.vectors
        rows = [self.row(r, ivs, number, count) for r in range(len(self.rows))]
        alone = sums[many:]
        if plan.hold_lhs:
            made = self.column_after_column(ivs, rows, number, sums[:many])
            return made + [self.step.alone(*x) for x in zip(alone, rows, strict=False)]
        panels = [self.right(ivs, number, count, v) for v in range(plan.vectors)]
        # Part by part: what a part needs of the panels is in registers for it alone.
        for prepare_left, prepare_right in self.step.parts:
            rights = [prepare_right(panel) for panel in panels]
            made: list[ir.Value] = []
            for r, row in enumerate(rows):  # its numbers in front of its products
                left = prepare_left(row)
                now = sums[len(made) : len(made) + plan.vectors]
                kept = [left] * plan.keep_broadcast_live if self.step.group == 1 else []
                made += in_order(plan, self.step.of_row(now, left, rights), *kept)
                if alone:
                    alone[r] = self.step.alone(alone[r], row)
            sums = made
        return sums + alone

    def column_after_column(
        self,
        ivs: list[ir.Value],
        rows: list[Row],
        number: ir.Value,
        sums: list[ir.Value],
    ) -> list[ir.Value]:
        """All rows are held, and the columns prepared one by one."""
        vectors = self.tile.plan.vectors
        lefts = [[prepare(row) for row in rows] for prepare, _ in self.step.parts]
        made: list[list[ir.Value]] = []
        for v in range(vectors):
            panel, now = self.right(ivs, number, rows[0].count, v), sums[v::vectors]
            for left, (_, prepare) in zip(lefts, self.step.parts, strict=True):
                right = prepare(panel)
                now = [
                    self.step.product(sum_, one, right)
                    for sum_, one in zip(now, left, strict=True)
                ]
            made.append(in_order(self.tile.plan, now))
        return [made[v][r] for r in range(len(rows)) for v in range(vectors)]


def right_reader(tile: Tile, group: int, most: int = 0) -> RightReader:
    """A function (loop variables, group number, steps inside, vector number) -> vector.

    Its lanes * group numbers are in the panels' order.
    """
    depth = tile.shape.reduced[-1]
    if tile.plan.packed:
        panel = PackedPanel.of(tile, group, most)

        def read(ivs: list[ir.Value], number: ir.Value, count: int, v: int) -> ir.Value:
            del count
            return panel.read(with_value(ivs, depth, number), v)

        return read

    def read_rows(
        ivs: list[ir.Value], number: ir.Value, count: int, v: int
    ) -> ir.Value:
        first = multiply(number, index(group))
        steps = (add(first, index(g)) for g in range(count))
        rows = [tile.read_right(with_value(ivs, depth, k), v) for k in steps]
        return interleaved_panel(rows + [filled(rows[0].type, 0)] * (group - count))

    return read_rows


def interleaved_panel(rows: list[ir.Value]) -> ir.Value:
    """Lane 0 of every row, then lane 1 of every row ...; a power of two of rows."""
    if len(rows) == 1:
        return rows[0]
    return vector.interleave(
        interleaved_panel(rows[::2]), interleaved_panel(rows[1::2])
    )


def left_map(tile: Tile) -> ir.AffineMap:
    return maps(tile.op)[tile.shape.left]


def lies_along(indexing: ir.AffineMap, dim: int) -> bool:
    """Whether a step of this dimension is the next element."""
    *outer, last = indexing.results
    inner = coefficient(last, dim) == 1
    return inner and all(dim not in dims_of(e) for e in outer)


def spread(value: ir.Value, lanes: int, element: ir.Type) -> ir.Value:
    """A group of the left operand in every lane, as a vector of these elements."""
    count = lanes * LANE // element.width  # type: ignore[attr-defined] - of numbers
    return in_lanes(word_of(value), ir.VectorType.get([count], element))


__all__ = [
    "Row",
    "Step",
    "Sums",
    "accumulate",
    "interleaved_panel",
    "itself",
    "spread",
    "starts",
    "zero_of",
]
