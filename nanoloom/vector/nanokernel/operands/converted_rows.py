"""A tile's rows of the left operand in the type they are multiplied in.

    for strip of k: for r in rows: wide[r][strip] = f32(left[r][strip])

a strip ahead of the products that read it, in their loop: what is converted in front of
the loop would be waited for.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanoloom.errors import Error
from nanoloom.ir.access import add, as_index, index
from nanoloom.ir.linalg_query import map_dims, maps
from nanoloom.ir.mlir import arith, ir, memref, vector
from nanoloom.vector.emit_loops import emit_loop
from nanoloom.vector.nanokernel.operands.convert_lhs import extended
from nanoloom.vector.nanokernel.reduction_loops import (
    Step,
    unrolled,
)
from nanoloom.vector.nanokernel.tile.task import as_buffer, locality, whole_loops
from nanoloom.vector.nanokernel.tile.tile import (
    Tile,
    origin,
    place_of,
    read_vector,
)
from nanoloom.vector.temporaries import LINE
from nanoloom.vector.tile_points import with_value


@dataclass(frozen=True)
class ConvertedRows:
    """room: [row, k]."""

    tile: Tile
    kind: ir.VectorType
    room: ir.Value

    @staticmethod
    def of(tile: Tile, kind: ir.VectorType) -> ConvertedRows:
        made = ir.MemRefType.get([tile.plan.rows, tile.steps], kind.element_type)
        with ir.InsertionPoint(whole_loops(tile.op)):
            return ConvertedRows(tile, kind, memref.alloc(made, [], [], alignment=LINE))

    def number(self, ivs: list[ir.Value], row: int) -> ir.Value:
        """A row's number in all lanes (fma.Number)."""
        found = memref.load(self.room, self.place(ivs, row))
        return vector.broadcast(self.kind, found)

    def place(self, ivs: list[ir.Value], row: int) -> list[ir.Value]:
        return [index(row), self.tile.step(ivs)]

    def strips(
        self,
        extent: int,
        steps: int,
        dim: int,
        ivs: list[ir.Value],
        sums: list[ir.Value],
        step: Step,
    ) -> list[ir.Value]:
        """As sum_loops.Innermost: the next strip, then this one's steps."""
        width = self.tile.plan.convert_lhs
        whole = extent // width * width

        def strip(place: ir.Value, now: list[ir.Value]) -> list[ir.Value]:
            following = arith.minui(add(place, index(width)), index(whole - width))
            self.widen(with_value(ivs, dim, following), width)
            self.fetch(dim, place, extent)

            def one(here: list[ir.Value], now: list[ir.Value]) -> list[ir.Value]:
                return step(with_value(here, dim, add(place, here[dim])), now)

            return unrolled(width, steps, dim, ivs, now, one)

        self.widen(with_value(ivs, dim, index(whole)), extent - whole)
        if whole:
            self.widen(ivs, width)
            sums = emit_loop((0, whole), width, sums, strip)
        for place in range(whole, extent):
            sums = step(with_value(ivs, dim, index(place)), sums)
        return sums

    def widen(self, ivs: list[ir.Value], count: int) -> None:
        """Convert so many numbers of every row, from loop variables on."""
        tile = self.tile
        indexing, deepest = maps(tile.op)[tile.shape.left], tile.shape.reduced[-1]
        along = map_dims(indexing)[-1] == deepest
        for row in range(tile.plan.rows):
            for begin, some in pieces(count, tile.lanes if along else 1):
                later = with_value(ivs, deepest, add(ivs[deepest], index(begin)))
                here = tile.at_row(later, tile.row_index(row))
                read = read_vector(tile.left, place_of(indexing, here), some, None)
                kind = ir.VectorType.get([some], self.kind.element_type)
                vector.store(extended(kind, read), self.room, self.place(later, row))

    def fetch(self, dim: int, place: ir.Value, extent: int) -> None:
        """Ask for the rows' numbers some steps further on than a place.

        Behind the end for the next rows'.
        """
        tile = self.tile
        word, where = tile.word_of(tile.left), map_dims(maps(tile.op)[tile.shape.left])
        if word is None:
            return
        if tile.row not in where or where[-1] != dim:
            raise Error("the left operand's rows do not lie along the sum: none comes")
        place = add(place, index(word.ahead))
        whole, offsets = origin(tile.left)
        source, row = as_buffer(whole), where.index(tile.row)
        over = arith.cmpi(arith.CmpIPredicate.uge, place, index(extent))
        behind = arith.subi(place, index(extent))
        first = arith.select(over, index(tile.plan.rows), index(0))
        at = [as_index(offset) for offset in offsets]
        at[-1] = add(at[-1], arith.select(over, behind, place))
        for number in range(tile.plan.rows):
            here = list(at)
            here[row] = add(add(at[row], first), index(number))
            memref.PrefetchOp(source, here, False, locality(word), True)


def pieces(count: int, most: int) -> list[tuple[int, int]]:
    """Where vectors begin, and how long they are, that hold so many numbers together.

    most: of a vector, a power of two; so are all of them.
    """
    found: list[tuple[int, int]] = []
    begin = 0
    while begin < count:
        some = min(most, 1 << ((count - begin).bit_length() - 1))
        found.append((begin, some))
        begin += some
    return found
