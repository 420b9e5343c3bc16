"""Sums of all pixels of an image: p[n, f] = sum of t[n, y, x, f].

t may have the pixels of all images as one axis of rows, t[(n h + y) w + x, f].
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from nanoloom.nest.contraction import Contraction, of_rows
from nanoloom.nest.index import Index
from nanoloom.nest.nest import LoopNest, Role
from nanoloom.nest.statement import Statement

MOST_PIXELS = 256  # of an image: 64 columns of them are 64 KiB


@dataclass(frozen=True)
class Summed:
    """A product, what follows it at the same places up to `end`, and the sums.

    last: what makes the result: the sums, or what follows them at the same places.
    """

    product: Statement
    end: Statement
    sums: Statement
    last: Statement
    shape: Contraction


def is_sum_of_rows(sums: Statement) -> bool:
    """Whether a stage adds up rows of what it reads, each column by itself.

    Vectors lie along the columns; the rows of one result stay in a cache.
    """
    if not sums.is_reduction or sums.is_contraction or not sums.reads:
        return False
    columns = sums.axes[len(sums.writes[0].plain) - 1].name
    rows = [a.extent for a in sums.axes if a.is_reduction]
    numbers = [extent for extent in rows if isinstance(extent, int)]
    few = len(numbers) == len(rows) and prod(numbers) <= MOST_PIXELS
    apart = all(is_of_rows(index, sums) for index in sums.reads[0].indices)
    several = sum(len(index.terms) > 1 for index in sums.reads[0].indices) > 1
    return few and apart and not several and sums.reads[0].lies_along(columns)


def is_of_rows(index: Index, sums: Statement) -> bool:
    """Whether an index counts rows of one axis after the other, each once.

    Windows that overlap, or leave rows out, do not.
    """
    if index.axis is not None:
        return True
    count = 1
    for axis, factor in reversed(index.terms):
        extent = sums.axes[sums.place(axis)].extent
        if factor != count or not isinstance(extent, int):
            return False
        count *= extent
    return not index.other and not index.offset


def makes_rows(product: Statement) -> Contraction | None:
    """The roles of the axes of a product of f32 whose columns all rows share."""
    shape = of_rows(product)
    return None if shape is None or shape.shared else shape


def summed(nest: LoopNest) -> Summed | None:
    """The parts of a nest that is a product with a parameter, and sums of its rows."""
    found = [stage for stage in nest.stages if is_sum_of_rows(stage)]
    if len(nest.products) != 1 or nest.last is None or len(found) != 1:
        return None
    (product,), (sums,) = nest.products, found
    end, shape = nest.writer(sums.reads[0].buffer), makes_rows(product)
    if end is None or shape is None or end == sums:
        return None
    weights = nest.buffer(product.reads[shape.right].buffer)
    behind = nest.stages[nest.stages.index(sums) :]
    rank = len(nest.last.writes[0].plain)
    alike = all(len(stage.writes[0].plain) == rank for stage in behind)
    if not alike or weights.role is not Role.CONSTANT or behind[-1] != nest.last:
        return None
    return Summed(product, end, sums, nest.last, shape)
