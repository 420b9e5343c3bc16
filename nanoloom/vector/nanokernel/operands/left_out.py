"""Multiply-adds of an image that is read where it lies, its border left out.

Reference loop, y the rows of the image above and x those of the tile:

    for k of the sum: for r in rows: acc[r] += pad[y + k, s (x + r) + l] * w[k, l]
      ->  tiles within a row:  for k up and down to the image's edge: the same, of x
          a tile at an end of a row:  the same, 0 for what is beside the image

How far the image reaches up and down is asked once for a tile.  A tile at the end of a
row has code of its own: in it the rows that leave the image ask at each step.
"""

from __future__ import annotations

from collections.abc import Mapping

from nanoloom.errors import Error
from nanoloom.mlir import arith, ir, scf
from nanoloom.vector.access import constant_of, index
from nanoloom.vector.multiples import multiple
from nanoloom.vector.nanokernel.fma import (
    product_step,
    right_columns,
    start_values,
    vector_kind,
)
from nanoloom.vector.nanokernel.operands.inside import Around, Inside, count_of
from nanoloom.vector.nanokernel.sum_loops import (
    Step,
    counted,
    place,
    unrolled,
    with_value,
)
from nanoloom.vector.nanokernel.tile.tile import Tile, as_index

Values = list[ir.Value]


def accumulate(tile: Tile, operand: Inside) -> list[ir.Value]:
    """Emit the loops over the reduced dimensions; gives rows * vectors accumulators."""
    kind = vector_kind(tile)
    sums = start_values(tile, kind)
    columns = right_columns(tile)
    across = [each for each in operand.around.values() if not each.row_step]
    limits = {x.dim: x.limits(tile.shape.extents[x.dim]) for x in across}

    def within() -> Values:
        step = product_step(tile, columns, operand.number(None, kind), rows(tile))
        return loops(tile, limits, step, sums)

    def at_end(begin: int) -> Values:
        ends = operand.along
        assert ends is not None
        number = operand.number(begin, kind)
        step = product_step(tile, columns, number, known_rows(tile, ends, begin))
        return loops(tile, limits, step, sums)

    every, ends = begins_of(tile, operand)
    if not ends:
        return within()
    along = operand.along
    assert along is not None, "tiles at its ends have rows along it"

    def some(left: list[int]) -> Values:
        if not left:
            return within()
        if len(left) == 1 and len(ends) == len(every):
            return at_end(left[0])
        here = arith.cmpi(arith.CmpIPredicate.eq, as_index(along.begin), index(left[0]))
        either = scf.IfOp(here, [s.type for s in sums], has_else=True)
        with ir.InsertionPoint(either.then_block):
            scf.yield_(at_end(left[0]))
        with ir.InsertionPoint(either.else_block):
            scf.yield_(some(left[1:]))
        return list(either.results)

    return some(ends)


def loops(
    tile: Tile,
    limits: Mapping[int, tuple[ir.Value | int, ir.Value | int]],
    step: Step,
    sums: Values,
) -> Values:
    """The loops of a sum.  limits: of dimensions where not all steps are."""

    def inside(dims: tuple[int, ...], ivs: Values, now: Values) -> Values:
        if not dims:
            return step(ivs, now)
        (dim, *rest), extent = dims, tile.shape.extents[dims[0]]

        def one(at: ir.Value, before: Values) -> Values:
            return inside(tuple(rest), with_value(ivs, dim, at), before)

        if dim in limits:
            begin, end = limits[dim]
            return counted(place(end), 1, now, one, begin=begin)
        if extent == 1:
            return inside(tuple(rest), ivs, now)
        if not rest:
            return unrolled(extent, tile.plan.unroll, dim, ivs, now, step)
        return counted(extent, 1, now, one)

    return inside(tile.shape.reduced, tile.ivs(index(0), index(0)), sums)


def rows(tile: Tile) -> Values:
    return [tile.row_index(r) for r in range(tile.plan.rows)]


def known_rows(tile: Tile, ends: Around, begin: int) -> Values:
    """The rows of a tile that begins at a place: the last one for those behind it."""
    assert tile.row is not None
    count = count_of(tile, ends) - begin // ends.row_step
    return [index(min(r, count - 1)) for r in range(tile.plan.rows)]


def begins_of(tile: Tile, operand: Inside) -> tuple[list[int], list[int]]:
    """Where tiles begin in a row of the padded image; and of those at its ends.

    Raises Error where others than the last may not be whole.
    """
    ends = operand.along
    if ends is None:
        return [], []
    count, size = count_of(tile, ends), tile.plan.rows
    begin = ends.begin if isinstance(ends.begin, int) else constant_of(ends.begin)
    apart = size * ends.row_step
    if begin is None and multiple(as_index(ends.begin)) % apart:
        raise Error(
            f"tiles of {size} pixels may begin elsewhere than {size} apart",
            hint="a border can be left out of whole tiles",
        )
    every = list(range(0, count * ends.row_step, apart)) if begin is None else [begin]
    reach = (tile.shape.extents[ends.dim] - 1) * ends.step
    found = [
        begin
        for begin in every
        if is_end(begin, min(size, count - begin // ends.row_step), ends, reach)
    ]
    return every, found


def is_end(begin: int, rows: int, ends: Around, reach: int) -> bool:
    """Whether a tile reads what is beside the image.  reach: of a row's steps."""
    last = begin + (rows - 1) * ends.row_step + reach
    return begin < ends.low or last >= ends.low + ends.size
