"""Multiply-adds with a right operand that is not packed: a task keeps it as a panel.

Reference loop:

    for tile of rows: for k...:
        if it is the first tile: for c in columns: panel[k][c] = f32(right[k][c])
        for r in rows: for c in columns: acc[r][c] += f32(left[r][k]) * panel[k][c]

Each row of the operand lies in another page of memory, of a wide one even in the same
few places of the caches; the panel is one after the other, and of the type that is
multiplied.  To copy it in front of the loops would be to wait, for memory and for the
cache to take it: between products it is nearly free.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from nanoloom.ir.access import add, index, multiply
from nanoloom.ir.linalg_query import maps
from nanoloom.ir.mlir import arith, ir, memref, vector
from nanoloom.schedule.directives.nanokernel import FRONT
from nanoloom.vector.emit_loops import emit_branch
from nanoloom.vector.nanokernel.fma import (
    Column,
    numbers,
    outer_products,
    right_column,
)
from nanoloom.vector.nanokernel.operands.converted_rows import ConvertedRows
from nanoloom.vector.nanokernel.reduction_loops import (
    nest,
    start_values,
    unrolled,
    vector_kind,
)
from nanoloom.vector.nanokernel.tile.operand_reuse import Visit, visit_of
from nanoloom.vector.nanokernel.tile.task import as_buffer, locality, whole_loops
from nanoloom.vector.nanokernel.tile.tile import Tile, place_of
from nanoloom.vector.temporaries import LINE, bytes_of


def accumulate(tile: Tile) -> list[ir.Value]:
    """Emit the loops over the reduced dimensions; gives rows * vectors accumulators."""
    panel, kind = Panel.of(tile), vector_kind(tile)
    start = start_values(tile, kind)
    number, innermost = numbers(tile, kind), unrolled
    if tile.plan.convert_lhs:
        rows = ConvertedRows.of(tile, kind)
        number, innermost = rows.number, rows.strips

    def products(column: Column) -> list[ir.Value]:
        return outer_products(tile, column, number, start, innermost)

    first = arith.cmpi(arith.CmpIPredicate.eq, panel.visit.again, index(0))
    if tile.plan.copy_rhs == FRONT:
        emit_branch(first, panel.fill_all)
        return products(panel.read)
    filling, reading = (partial(products, x) for x in (panel.fill, panel.read))
    return emit_branch(first, filling, reading, [s.type for s in start])


@dataclass(frozen=True)
class Panel:
    """What a task has of the right operand.

    room: [k, column], one part behind the other.
    """

    tile: Tile
    kind: ir.VectorType
    visit: Visit
    room: ir.Value

    @staticmethod
    def of(tile: Tile) -> Panel:
        kind, visit = vector_kind(tile), visit_of(tile.op, tile.right)
        extents = [visit.places * tile.steps, tile.columns]
        made = ir.MemRefType.get(extents, kind.element_type)
        with ir.InsertionPoint(whole_loops(tile.op)):
            room = memref.alloc(made, [], [], alignment=LINE)
        return Panel(tile, kind, visit, room)

    def fill(self, ivs: list[ir.Value], v: int) -> ir.Value:
        """A column at loop variables, from the operand; and it is kept."""
        if not v:
            self.fetch(ivs)
        made = right_column(self.tile)(ivs, v)
        vector.store(made, self.room, self.place(ivs, v))
        return made

    def fill_all(self) -> None:
        """All of the panel, in front of the products."""

        def step(ivs: list[ir.Value], nothing: list[ir.Value]) -> list[ir.Value]:
            for v in range(tile.plan.vectors):
                self.fill(ivs, v)
            return nothing

        tile = self.tile
        begin = tile.ivs(index(0), index(0))
        nest(tile, list(tile.shape.reduced), begin, [], step, unrolled)

    def read(self, ivs: list[ir.Value], v: int) -> ir.Value:
        """The same column, from the panel."""
        return vector.load(self.kind, self.room, self.place(ivs, v))

    def place(self, ivs: list[ir.Value], v: int) -> list[ir.Value]:
        first = multiply(self.visit.place, index(self.tile.steps))
        return [add(first, self.tile.step(ivs)), index(v * self.tile.lanes)]

    def fetch(self, ivs: list[ir.Value]) -> None:
        """Ask for columns some steps further on; past the end they are not read."""
        tile, later = self.tile, list(ivs)
        deepest, word = tile.shape.reduced[-1], tile.word_of(tile.right)
        if word is None:
            return
        later[deepest] = add(ivs[deepest], index(word.ahead))
        source = as_buffer(tile.right)
        element = ir.RankedTensorType(tile.right.type).element_type
        for column in range(0, tile.columns, LINE // bytes_of(element)):
            later[tile.shape.column] = index(column)
            at = place_of(maps(tile.op)[tile.shape.right], later)
            memref.PrefetchOp(source, at, False, locality(word), True)
