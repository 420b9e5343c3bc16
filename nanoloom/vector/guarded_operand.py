"""Guarded reads: what is within a tensor, and a fill elsewhere (fusion/pad_op.py).

    p[i, j] = x[i - 1, j - 1] if 0 <= i - 1 < h and 0 <= j - 1 < w, else z

A pad's body is read once.  Of a vector along a guarded dimension the lanes within are
loaded under a mask; a dimension that all lanes share is asked for, and read at the
nearest place within.  A sum that reads numbers one by one does so at the steps that are
within (loop_partition.py).  No place outside is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

from nanoloom.ir.access import (
    Operand,
    add,
    coefficient,
    constant_of,
    difference,
    index,
    multiply,
)
from nanoloom.ir.linalg_query import (
    dims_of,
    map_dims,
)
from nanoloom.ir.mlir import arith, ir, made_by, vector
from nanoloom.nest.extent import Lanes
from nanoloom.vector.body import read
from nanoloom.vector.extents import size
from nanoloom.vector.guard import Bounds, larger, steps_within
from nanoloom.vector.widths import vector_type

if TYPE_CHECKING:
    from nanoloom.vector.register_tile import RegisterTile
    from nanoloom.vector.tile_points import Point
    from nanoloom.vector.value_cache import ValueCache

FRONT, BEHIND = arith.CmpIPredicate.sge, arith.CmpIPredicate.slt


@dataclass(frozen=True)
class Edges:
    """Of a dimension: whether a place may be in front of what is within, and the size
    of that where one may be behind it.  shift: from its first place to the tensor's."""

    front: bool = False
    behind: ir.Value | None = None
    shift: int = 0

    @property
    def count(self) -> int:
        """At how many ends a place may be outside."""
        return self.front + (self.behind is not None)


@dataclass(frozen=True)
class GuardedOperand(Operand):
    """A tensor that is read where a place is within it.

    begins: what is added to each index.  edges: of each dimension.  fill: the constant
    elsewhere, None for an input of the pad's.
    """

    begins: tuple[ir.Value, ...]
    edges: tuple[Edges, ...]
    fill: ir.Value | None

    @property
    def is_within(self) -> bool:
        return True

    @property
    def around(self) -> list[int]:
        """The dimensions with a guard."""
        return [d for d, edges in enumerate(self.edges) if edges.count]

    @property
    def adds_nothing(self) -> bool:
        """Whether a sum of products is the same without what is outside."""
        return self.fill is not None and is_zero(self.fill)

    def places(self, ivs: Sequence[ir.Value]) -> list[ir.Value]:
        """Where in what is within, for these values of the loop dimensions."""
        at = Operand.indices(self, ivs)
        return [add(x, begin) for x, begin in zip(at, self.begins, strict=True)]

    def indices(self, ivs: Sequence[ir.Value]) -> list[ir.Value]:
        """The same in the tensor."""
        at = zip(self.places(ivs), self.edges, strict=True)
        return [add(x, index(edges.shift)) for x, edges in at]

    def read_by(
        self, indexing: ir.AffineMap, axes: Sequence[int | None]
    ) -> GuardedOperand:
        """The same in the loops of what reads a pad; axes: the pad's of its result."""
        own = map_dims(self.indexing)
        results = [
            ir.AffineConstantExpr.get(0)
            if axis is None
            else indexing.results[axes.index(axis)]
            for axis in own
        ]
        return replace(self, indexing=ir.AffineMap.get(indexing.n_dims, 0, results))

    # ---- one by one, in a sum ------------------------------------------------------

    def along(self, dim: int) -> int | None:
        """The guarded dimension that a loop goes along."""
        results = list(self.indexing.results)
        return next((d for d in self.around if dim in dims_of(results[d])), None)

    def factor(self, place: int, dim: int) -> int:
        """How far a step of a loop goes along a dimension."""
        factor = coefficient(self.indexing.results[place], dim)
        assert factor is not None and factor > 0, "windows go ahead"
        return factor

    def size(self, place: int) -> ir.Value:
        """How many places of a dimension are within."""
        edges = self.edges[place]
        return edges.behind or difference(size(self.buffer, place), index(edges.shift))

    def steps(self, place: int, dim: int, point: Point, extent: ir.Value) -> Bounds:
        """The steps of a sum that are within, from a window's first on."""
        begin = self.places(point.moved(dim, index(0)).ivs)[place]
        by = self.factor(place, dim)
        return steps_within(begin, by, self.size(place), extent)

    def windows(self, place: int, dim: int, strip: RegisterTile) -> Bounds:
        """The points of a loop whose windows are within."""
        zeros = [index(0) for _ in strip.kinds]
        begin, extent = self.places(zeros)[place], strip.extent(dim)
        by, reach = self.factor(place, dim), index(0)
        for tap in dims_of(self.indexing.results[place]) - {dim}:
            last = difference(strip.extent(tap), index(1))
            reach = add(reach, multiply(last, index(self.factor(place, tap))))
        inside = difference(self.size(place), reach)
        first, end = steps_within(begin, by, inside, extent)
        return first, larger(first, end)

    # ---- in lanes ------------------------------------------------------------------

    def value(self, reader: RegisterTile, point: Point, once: ValueCache) -> ir.Value:
        """What a pad makes at a point of its own loops: a vector."""
        given = reader.vector_of(0, point, once) if self.fill is None else None
        asked, at = LanesWithin(reader.lanes, point.mask), list[ir.Value]()
        ways = zip(self.indexing.results, self.edges, strict=True)
        for (expr, edges), here in zip(ways, self.places(point.ivs), strict=True):
            near, along = here, reader.dim in dims_of(expr)
            if edges.front:
                asked.ask(FRONT, here, index(0), along=along)
                near = here if along else arith.maxsi(here, index(0))
            if edges.behind is not None:
                asked.ask(BEHIND, here, edges.behind, along=along)
                last = difference(edges.behind, index(1))
                near = here if along else arith.minsi(near, last)
            at.append(add(near, index(edges.shift)))
        if self.fill is not None:
            fill = self.fill.owner.clone().results[0]  # type: ignore[union-attr] - a constant
            given = vector.broadcast(vector_type(reader.lanes, fill.type), fill)
        assert given is not None, "a constant or an input"
        return given if asked.nowhere else asked.load(self.buffer, at, given)


@dataclass
class LanesWithin:
    """Which lanes of a vector are within, as far as that has been asked.

    mask: the lanes that count.  asked: conditions, of each lane or of all.  nowhere:
    none is within, as is known.
    """

    lanes: Lanes
    mask: ir.Value | None
    asked: list[ir.Value] = field(default_factory=list[ir.Value])
    nowhere: bool = False

    def ask(
        self,
        predicate: arith.CmpIPredicate,
        here: ir.Value,
        bound: ir.Value,
        *,
        along: bool,
    ) -> None:
        """One more condition on a place; along: on that of each lane, from here on."""
        place, end = constant_of(here), constant_of(bound)
        if not along and place is not None and end is not None:
            self.nowhere |= place < end if predicate is FRONT else place >= end
            return
        if along:  # in 32 bits: a register of them
            i32 = ir.IntegerType.get_signless(32)
            kind = vector_type(self.lanes, i32)
            first, bound = (arith.index_cast(i32, x) for x in (here, bound))
            here = arith.addi(vector.broadcast(kind, first), steps(kind))
            bound = vector.broadcast(kind, bound)
        self.asked.append(arith.cmpi(predicate, here, bound))

    def all_of(self, conditions: Sequence[ir.Value]) -> ir.Value | None:
        """Whether all of these hold, None of none of them."""
        return reduce(arith.andi, conditions) if conditions else None

    def load(self, buffer: ir.Value, at: list[ir.Value], fill: ir.Value) -> ir.Value:
        """Neighbours from a place on where they are within, the fill elsewhere.

        What is asked of lanes comes first: rows of a tile have it in common.
        """
        i1 = ir.IntegerType.get_signless(1)
        row = self.all_of([x for x in self.asked if x.type == i1])
        along = [x for x in self.asked if x.type != i1]
        if not along:
            made = read(fill.type, buffer, at, self.mask)  # type: ignore[arg-type] - a vector
            return made if row is None else arith.select(row, made, fill)
        mask = self.all_of(along if self.mask is None else [*along, self.mask])
        assert mask is not None, "of the lanes that were asked"
        if row is not None:
            mask = arith.andi(vector.broadcast(vector_type(self.lanes, i1), row), mask)
        return vector.maskedload(fill.type, buffer, at, mask, fill)


def steps(kind: ir.VectorType) -> ir.Value:
    """0, 1, 2, ..."""
    numbers = [ir.IntegerAttr.get(kind.element_type, n) for n in range(kind.shape[0])]
    return arith.constant(kind, ir.DenseElementsAttr.get(numbers, kind))


def is_zero(value: ir.Value) -> bool:
    """Whether a number, or all lanes of a vector, are known to be 0."""
    owner = made_by(value, "vector.broadcast", "arith.constant")
    if owner is None or owner.name == "vector.broadcast":
        return owner is not None and is_zero(owner.operands[0])
    known = not isinstance(value.type, ir.VectorType)
    return known and owner.attributes["value"].value == 0  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
