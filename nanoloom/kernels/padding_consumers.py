"""Which readers can make a pad within their loops, and how often they would."""

from __future__ import annotations

from nanoloom.kernels.group import Group
from nanoloom.kernels.linalg_query import (
    Kind,
    Op,
    dims_of,
    extents,
    is_contraction,
    is_generic,
    iterators,
    map_dims,
    maps,
)
from nanoloom.kernels.nest import alone
from nanoloom.nest.footprint import footprint
from nanoloom.nest.index import Index

MOST_ROWS = 8  # that one row of results reads: they are padded for each task


def can_absorb(reader: Op, number: int, group: Group | None) -> bool:
    """Whether a kernel can compute a pad within its loops, and not too often.

    Of products those of windows: others have tasks of many long rows.
    """
    if group is None or group.root is Kind.OPAQUE:
        return False
    products = [op for op in group.ops if is_generic(op) and is_contraction(op)]
    if len(products) > 1:
        return False
    if is_contraction(reader):
        return has_windows(reader, number)
    return reads_few_rows(reader, number)


def has_windows(reader: Op, number: int) -> bool:
    """Whether windows of a product go over an operand."""
    return is_contraction(reader) and None in map_dims(maps(reader)[number])


def reads_few_rows(reader: Op, number: int) -> bool:
    """Whether a row of results needs no more of a padded image than a few rows."""
    stage = alone(reader)
    *rows, _, _ = (Index(), Index(), *stage.reads[number].indices)
    sizes = {a.name: a.extent if a.is_reduction else 1 for a in stage.axes}
    reaches = [footprint(index, sizes, MOST_ROWS + 1) for index in rows]
    return all(isinstance(n, int) and n <= MOST_ROWS for n in reaches)


def slides(reader: Op, number: int) -> bool:
    """Whether windows go along rows of pixels, as vectors do, by one or two."""
    stage = alone(reader)
    written = stage.writes[0].plain
    if not written or written[-1] is None:
        return False
    read, along = stage.reads[number], written[-1]
    return along in read.axes and read.follows_on(along, 2)


def shares(reader: Op, number: int) -> bool:
    """Whether tasks of a reader have parts of what it reads: not its rows whole."""
    sizes, kinds = extents(reader), iterators(reader)
    *outer, _ = maps(reader)[number].results
    moving = {d for expr in outer for d in dims_of(expr)}
    return any(kinds[d] == "parallel" and sizes[d] > 1 for d in moving)
