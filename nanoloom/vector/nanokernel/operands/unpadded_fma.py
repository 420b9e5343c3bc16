"""Multiply-adds of an image that is read where it lies, its border left out.

Reference loop, y the rows of the image above and x those of the tile:

    for k of the sum: for r in rows: acc[r] += pad[y + k, s (x + r) + l] * w[k, l]
      ->  tiles within a row:  for k up and down to the image's edge: the same, of x
          a tile at an end of a row:  the same, 0 for what is beside the image

How far the image reaches up and down is asked once for a tile.  A tile at the end of a
row has code of its own: in it the rows that leave the image ask at each step.  Where
only a run knows which tiles are at ends, as of images of any size, each asks: there is
code for those within, for the first one and the last, and for others, which may have
fewer rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from nanoloom.mlir import arith, ir, scf, vector
from nanoloom.nest.guard import MOST_ENDS, Guard, Partition
from nanoloom.vector.access import add, constant_of, index, multiply
from nanoloom.vector.index_multiples import multiple
from nanoloom.vector.nanokernel.fma import (
    product_step,
    right_columns,
    start_values,
    vector_kind,
)
from nanoloom.vector.nanokernel.operands.unpadded_lhs import (
    PaddingBounds,
    Pixels,
    UnpaddedImage,
    count_of,
)
from nanoloom.vector.nanokernel.reduction_loops import nest, unrolled
from nanoloom.vector.nanokernel.tile.row_position import RowPosition
from nanoloom.vector.nanokernel.tile.tile import Tile, as_index

Values = list[ir.Value]
SAME, LESS = arith.CmpIPredicate.eq, arith.CmpIPredicate.slt


def accumulate(tile: Tile, operand: UnpaddedImage) -> list[ir.Value]:
    """Emit the loops over the reduced dimensions; gives rows * vectors accumulators."""
    kind = vector_kind(tile)
    start, columns = start_values(tile, kind), right_columns(tile)
    limits, ivs = operand.limits, tile.ivs(index(0), index(0))

    def sums(pixels: Pixels, rows: Values) -> Values:
        def number(ivs: Values, row: int) -> ir.Value:
            return vector.broadcast(kind, pixels.number(ivs, row))

        step, dims = product_step(tile, columns, number, rows), tile.shape.reduced
        return nest(tile, dims, ivs, start, step, unrolled, limits=limits)

    return by_place(tile, operand, sums)


def by_place(
    tile: Tile, operand: UnpaddedImage, sums: Callable[[Pixels, Values], Values]
) -> Values:
    """The sums of a tile by where in a row of an image it is, of known rows of it."""
    along = operand.along
    if along is None or tile.place is RowPosition.WITHIN:
        return sums(operand.at(None), tile.row_indices)
    known = known_ends(tile, along)
    if known is None:
        begin = 0 if tile.place is RowPosition.FIRST else as_index(along.begin)
        return sums(operand.at(begin), tile.row_indices)
    every, ends = known
    kinds = [vector_kind(tile)] * tile.plan.rows * tile.plan.vectors

    def some(left: list[int]) -> Values:
        if not left:
            return sums(operand.at(None), tile.row_indices)
        first, *rest = left

        def at_end() -> Values:
            return sums(operand.at(first), known_rows(tile, along, first))

        if not rest and len(ends) == len(every):
            return at_end()
        here = arith.cmpi(SAME, as_index(along.begin), index(first))
        return select_row(here, at_end, lambda: some(rest), kinds)

    return some(ends)


def by_ends(
    tile: Tile, sums: Callable[[Tile], Values], few: Callable[[Tile], Values]
) -> Values:
    """The sums of a tile by where in a row of an image it is, where only a run knows.

    sums: of a tile whose place is known.  few: of any.
    """
    along = unknown_end(tile)
    if along is None:
        return few(tile)
    kinds = [vector_kind(tile)] * tile.plan.rows * tile.plan.vectors

    def some(left: list[tuple[Tile, ir.Value]]) -> Values:
        if not left:
            return few(tile)
        (placed, here), *rest = left
        return select_row(here, lambda: sums(placed), lambda: some(rest), kinds)

    return some(places_of(tile, along))


def is_at_any_place(tile: Tile) -> bool:
    """Whether only a run knows where in a row of an image a tile is."""
    return unknown_end(tile) is not None


def unknown_end(tile: Tile) -> PaddingBounds | None:
    """What is around an image along a tile's rows, where only a run knows its ends."""
    operand = UnpaddedImage.of(tile)
    along = None if operand is None else operand.along
    known = along is None or known_ends(tile, along) is not None
    return None if known else along


def places_of(tile: Tile, along: PaddingBounds) -> list[tuple[Tile, ir.Value]]:
    """A tile at the places where it may be, and whether it is there.

    Whole, but within an image of known size.
    """
    whole = replace(tile, row_count=None)
    within = whole if tile.sized else tile
    rows_end = multiply(within.row_index(tile.plan.rows - 1), index(along.row_step))
    begin = as_index(along.begin)
    reached = add(add(begin, rows_end), index(along.reach))
    before = arith.cmpi(LESS, reached, along.end)
    behind = arith.cmpi(arith.CmpIPredicate.sge, begin, index(along.low))
    first = arith.andi(before, arith.cmpi(SAME, begin, index(0)))
    inside, last = arith.andi(before, behind), behind
    if tile.row_count is not None:
        full = arith.cmpi(SAME, tile.row_count, index(tile.plan.rows))
        first, last = arith.andi(first, full), arith.andi(last, full)
        inside = arith.andi(inside, full) if tile.sized else inside
    found = [(replace(within, place=RowPosition.WITHIN), inside)]
    if along.low:
        found.append((replace(whole, place=RowPosition.FIRST), first))
    if along.high:
        found.append((replace(whole, place=RowPosition.LAST), last))
    return found


def select_row(
    here: ir.Value,
    one: Callable[[], Values],
    other: Callable[[], Values],
    kinds: Sequence[ir.Type],
) -> Values:
    """What one of two ways gives, as only a run knows."""
    made = scf.IfOp(here, list(kinds), has_else=True)
    for block, way in ((made.then_block, one), (made.else_block, other)):
        with ir.InsertionPoint(block):
            scf.yield_(way())
    return list(made.results)


def known_rows(tile: Tile, ends: PaddingBounds, begin: int) -> Values:
    """The rows of a tile that begins at a place: the last one for those behind it."""
    assert tile.row is not None
    count = count_of(tile, ends) - begin // ends.row_step
    return [index(min(r, count - 1)) for r in range(tile.plan.rows)]


def known_ends(tile: Tile, ends: PaddingBounds) -> tuple[list[int], list[int]] | None:
    """Where tiles begin in a row of the padded image; and of those at its ends.

    None where only a run knows, or more are at ends than have code of their own.
    """
    if not isinstance(ends.size, int) or (tile.sized and tile.row_count is not None):
        return None
    count, size = count_of(tile, ends), tile.plan.rows
    begin = ends.begin if isinstance(ends.begin, int) else constant_of(ends.begin)
    apart = size * ends.row_step
    if begin is None and multiple(as_index(ends.begin)) % apart:
        return None
    guard = Guard(-ends.low, ends.row_step, ends.size, ends.reach)
    if begin is None:
        tiles = Partition.of(guard.steps(count), count, size)
        every = [at * ends.row_step for at in range(0, count, size)]
        found = [at * ends.row_step for at in tiles.ends]
    else:
        rows = min(size, count - begin // ends.row_step)
        inside = replace(guard, begin=begin - ends.low).steps(rows)
        every = [begin]
        found = [] if len(inside) == rows else every
    return (every, found) if len(found) <= MOST_ENDS else None
