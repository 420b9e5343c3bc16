"""Rows of which groups of steps lie together (packed_reads.py), as scalable registers.

    w'[k / 4, 4 j + k % 4]

A register has the groups of as many columns as it has lanes of 32 bits.
"""

from __future__ import annotations

from collections.abc import Iterator
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


def grouped_registers(
    strip: RegisterTile,
    number: int,
    along: tuple[int, int],
    kind: ir.VectorType,
    point: Point,
) -> Iterator[ir.Value]:
    """The group that a point's step is in, of all columns of a vector.

    number: of the input that lies so.  along: the dimension of the sum, and its steps
    in a group.  kind: of a register.  Each is loaded when it is
    asked for.
    """
    x, (width,) = strip.inputs[number], kind.shape
    depth, group = along
    row = group_number(point.ivs[depth], group)
    column = multiply(point.ivs[strip.dim], index(group))
    *outer, _, _ = x.indexing.results
    lead = [apply(e, point.ivs) for e in outer]
    lanes, masks = Lanes(width, scalable=True), list[ir.Value]()
    if point.mask is not None:  # of columns, as those of their groups' numbers
        bits = vector_type(lanes, ir.IntegerType.get_signless(1))
        masks = parts_of(interleaved_panel([point.mask] * group), bits)
    for part in range(strip.lanes.count * group // width):
        at = [*lead, row, add(column, as_index(elements(lanes, part)))]
        if masks:
            rest = filled(kind, 0)
            yield vector.maskedload(kind, x.buffer, at, masks[part], rest)
        else:
            yield vector.load(kind, x.buffer, at)


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
