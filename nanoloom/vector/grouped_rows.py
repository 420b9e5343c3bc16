"""Rows of which groups of steps lie together (packed_reads.py), as scalable registers.

    w'[k / 4, 4 j + k % 4]

A register has the groups of as many columns as it has lanes of 32 bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nanoloom.ir.access import (
    Operand,
    add,
    apply,
    as_index,
    divide,
    index,
    multiply,
    parts,
)
from nanoloom.ir.mlir import ir, vector
from nanoloom.nest.extent import Lanes
from nanoloom.vector.nanokernel.k_groups import interleaved_panel
from nanoloom.vector.tile_points import Point
from nanoloom.vector.widths import elements, filled, vector_type

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile


def in_groups_of(x: Operand, column: int, depth: int, group: int) -> bool:
    """Whether so many steps of each column lie together in an operand."""
    results = list(x.indexing.results)
    step, lane = ir.AffineExpr.get_dim(depth), ir.AffineExpr.get_dim(column)
    row = ir.AffineExpr.get_floor_div(step, group)
    return results[-2:] == [row, lane * group + step % group]


@dataclass(frozen=True)
class GroupedRows:
    """An input of a strip that lies so.  kind: of a register."""

    strip: RegisterTile
    number: int
    depth: int
    group: int
    kind: ir.VectorType

    @property
    def operand(self) -> Operand:
        return self.strip.inputs[self.number]

    def registers(self, point: Point) -> Iterator[ir.Value]:
        """The group that a point's step is in, of all columns of a vector.

        Each is loaded when it is asked for.
        """
        width, buffer = self.kind.shape[0], self.operand.buffer
        count = self.strip.lanes.count * self.group // width
        row = group_number(point.ivs[self.depth], self.group)
        column = multiply(point.ivs[self.strip.dim], index(self.group))
        *outer, _, _ = self.operand.indexing.results
        lead = [apply(e, point.ivs) for e in outer]
        lanes = Lanes(width, scalable=True)
        masks = [] if point.mask is None else self.masks(point.mask)
        for number in range(count):
            at = [*lead, row, add(column, as_index(elements(lanes, number)))]
            if masks:
                rest = filled(self.kind, 0)
                yield vector.maskedload(self.kind, buffer, at, masks[number], rest)
            else:
                yield vector.load(self.kind, buffer, at)

    def masks(self, mask: ir.Value) -> list[ir.Value]:
        """A mask of columns as masks of their groups' numbers."""
        bit = ir.IntegerType.get_signless(1)
        kind = vector_type(Lanes(self.kind.shape[0], scalable=True), bit)
        return parts_of(interleaved_panel([mask] * self.group), kind)


def parts_of(wide: ir.Value, kind: ir.VectorType) -> list[ir.Value]:
    """A vector as registers."""
    width = kind.shape[0]
    count = ir.VectorType(wide.type).shape[0] // width
    return [vector.scalable_extract(kind, wide, n * width) for n in range(count)]


def group_number(step: ir.Value, group: int) -> ir.Value:
    """Which group a step is in; whole groups behind a place stand as a number."""
    base, more = parts(step)
    if base is None:
        return index(more // group)
    if more % group:
        return divide(step, index(group))
    return add(divide(base, index(group)), index(more // group))
