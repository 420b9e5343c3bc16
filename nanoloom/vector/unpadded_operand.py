"""Images with a border whose numbers a sum reads one by one, where they lie.

    p = x inside, 0 around it;  for i: for k in 0..3: y[i] += p[s i + k] * w[k]
      ->  for i: for k within x: y[i] += x[s i + k - 1] * w[k]

The sum of a window that leaves the image has fewer terms.  Rows above and below it are
no steps of the loop over them.  Along a row points are computed at once, and those at
its ends by themselves: which of them are inside at which step is known there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nanoloom.kernels.linalg_query import (
    bordered,
    dims_of,
    is_pad,
    map_dims,
    sums_products,
)
from nanoloom.mlir import ir
from nanoloom.vector.access import (
    Access,
    Operand,
    add,
    coefficient,
    constant_of,
    difference,
    index,
    multiply,
    written,
)
from nanoloom.vector.extents import size
from nanoloom.vector.guard import Bounds, larger, steps_within
from nanoloom.vector.padding_body import CLAMPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nanoloom.vector.inlined_producers import InlinedProducer
    from nanoloom.vector.register_tile import RegisterTile
    from nanoloom.vector.tile_points import Point

Place = tuple[int | None, ir.Value]  # an axis of a pad, and what is added to it


@dataclass(frozen=True)
class UnpaddedOperand(Operand):
    """What is within a border, read at places of the padded image.

    begins: what is added to each index.  around: the dimensions with a border.
    """

    begins: tuple[ir.Value, ...]
    around: frozenset[int]

    @property
    def is_within(self) -> bool:
        return True

    def indices(self, ivs: Sequence[ir.Value]) -> list[ir.Value]:
        """The number's index in the image for these values of the loop dimensions."""
        at = Operand.indices(self, ivs)
        return [add(x, begin) for x, begin in zip(at, self.begins, strict=True)]

    def along(self, dim: int) -> int | None:
        """The dimension with a border that a loop goes along."""
        results = list(self.indexing.results)
        return next((d for d in self.around if dim in dims_of(results[d])), None)

    def factor(self, place: int, dim: int) -> int:
        """How far a step of a loop goes along a dimension."""
        factor = coefficient(self.indexing.results[place], dim)
        assert factor is not None and factor > 0, "windows go ahead"
        return factor

    def steps(self, place: int, dim: int, point: Point, extent: ir.Value) -> Bounds:
        """The steps of a sum that are within the image, from a window's first on."""
        begin = self.indices(point.moved(dim, index(0)).ivs)[place]
        by = self.factor(place, dim)
        return steps_within(begin, by, size(self.buffer, place), extent)

    def windows(self, place: int, dim: int, strip: RegisterTile) -> Bounds:
        """The points of a loop whose windows are within the image."""
        zeros = [index(0) for _ in strip.kinds]
        begin, extent = self.indices(zeros)[place], strip.extent(dim)
        by, reach = self.factor(place, dim), index(0)
        for tap in dims_of(self.indexing.results[place]) - {dim}:
            last = difference(strip.extent(tap), index(1))
            reach = add(reach, multiply(last, index(self.factor(place, tap))))
        inside = difference(size(self.buffer, place), reach)
        first, end = steps_within(begin, by, inside, extent)
        return first, larger(first, end)


def read_unpadded(strip: RegisterTile, reader: ir.OpView) -> dict[int, UnpaddedOperand]:
    """The operands of a sum of products that are read where they lie, by number."""
    found: dict[int, UnpaddedOperand] = {}
    if not strip.reduced or not sums_products(reader):
        return found
    for number, source in strip.sources.items():
        made = unpadded_operand(strip, number, source)
        if made is not None:
            found[number] = made
    return found


# ---- what a pad says -----------------------------------------------------------------


def unpadded_operand(
    strip: RegisterTile, number: int, source: InlinedProducer
) -> UnpaddedOperand | None:
    """An operand that a pad makes, as it lies; None where it cannot be read there."""
    x, block = strip.inputs[number], source.strip.block
    if not is_pad(source.made_by.opview) or x.access(strip.dim) is not Access.UNIFORM:
        return None
    loads = [op.operation for op in block.operations if op.name == "memref.load"]
    asked = [op.operation for op in block.operations if op.name == "arith.cmpi"]
    *_, fill = bordered(source.made_by.opview)
    if len(loads) != 1 or not fill or float(fill):
        return None
    image, *at = loads[0].operands
    places = [p for value in at if (p := traced(value, block)) is not None]
    (write,) = source.strip.outputs
    axes = map_dims(write.indexing)
    read = [None if axis is None else axes.index(axis) for axis, _ in places]
    edges = [edge(op, block, image, places) for op in asked]
    if len(places) != len(at) or None in edges:
        return None
    results = [
        ir.AffineConstantExpr.get(0) if d is None else x.indexing.results[d]
        for d in read
    ]
    around = frozenset(place for place in edges if place is not None)
    if not all(slides(strip, results[place]) for place in around):
        return None
    indexing = ir.AffineMap.get(len(strip.kinds), 0, results)
    return UnpaddedOperand(image, indexing, tuple(begin for _, begin in places), around)


def edge(
    asked: ir.Operation, block: ir.Block, image: ir.Value, places: Sequence[Place]
) -> int | None:
    """The dimension of an image of which a pad asks whether a place is in it; None
    where it asks for anything else."""
    here, bound = traced(asked.operands[0], block), traced(asked.operands[1], block)
    if here is None or bound is None or bound[0] is not None:
        return None
    for place, (axis, begin) in enumerate(places):
        if axis is None or axis != here[0] or written(begin) != written(here[1]):
            continue
        wide = constant_of(size(image, place))
        return place if constant_of(bound[1]) in (0, wide) else None
    return None


def slides(strip: RegisterTile, expr: ir.AffineExpr) -> bool:
    """Whether windows go along a dimension: steps of one sum, of one loop of points."""
    dims = dims_of(expr)
    taps = [d for d in dims if strip.kinds[d] == "reduction"]
    ahead = all((coefficient(expr, d) or 0) > 0 for d in dims)
    return ahead and len(taps) == 1 and len(dims) <= 2


def traced(value: ir.Value, block: ir.Block) -> Place | None:
    """An index of a pad's body as axis + number; None for anything else."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.block != block:
        return None, value
    if owner.name == "arith.constant":
        number = constant_of(value)
        return None if number is None else (None, index(number))
    if owner.name == "linalg.index":
        return owner.attributes["dim"].value, index(0)  # type: ignore[attr-defined] - MLIR's stubs know no kinds of attributes
    given = [p for x in owner.operands if (p := traced(x, block)) is not None]
    if len(given) != 2 or len(list(owner.operands)) != 2:
        return None
    (one, near), (other, far) = given
    if owner.name in CLAMPS and other is None:
        return one, near
    if owner.name == "arith.addi" and None in (one, other):
        return (other if one is None else one), add(near, far)
    if owner.name == "arith.muli" and one is None and other is None:
        return None, multiply(near, far)
    return None
