"""The left operand of a tile, an image that is read where it lies, without its border.

pad[y + k, s x + l]  ->  x[y + k - low, s x + l - low], where that is within x
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nanoloom.kernels.structure import bordered, dims_of, is_pad, maps
from nanoloom.mlir import arith, ir, tensor, vector
from nanoloom.vector.access import add, apply, coefficient, constant_of, index
from nanoloom.vector.nanokernel.fma import Factor
from nanoloom.vector.nanokernel.tile.tile import Tile, as_index, origin, zero_of
from nanoloom.vector.store_at import APART, is_at_source

Values = list[ir.Value]


@dataclass(frozen=True)
class Around:
    """A dimension of an image with a border, as a tile reads it.

    begin: of the tile, in the padded image.  low, size: where the image is in it.
    dim, step: the axis of the sum that goes along it, and how far.
    row_step: the same of the tile's rows, 0 where they do not.
    """

    begin: ir.Value | int
    low: int
    size: int
    dim: int
    step: int
    row_step: int

    def is_inside(self, begin: int, row: int, number: int) -> bool:
        """Whether a row's step of the sum is within the image; begin: of the tile."""
        at = begin + row * self.row_step + number * self.step - self.low
        return 0 <= at < self.size

    def limits(self, extent: int) -> tuple[ir.Value | int, ir.Value | int]:
        """The steps of the sum that are within the image, where rows do not matter."""
        if isinstance(self.begin, int):
            steps = [n for n in range(extent) if self.is_inside(self.begin, 0, n)]
            return (steps[0], steps[-1] + 1) if steps else (0, 0)

        def first_from(edge: int) -> ir.Value:
            zero = index(0)
            ahead = arith.maxsi(arith.subi(index(edge), as_index(self.begin)), zero)
            if self.step > 1:
                ahead = arith.ceildivui(ahead, index(self.step))
            return arith.minui(ahead, index(extent))

        return first_from(self.low), first_from(self.low + self.size)


@dataclass(frozen=True)
class Inside:
    """The left operand of a tile, a border that is left out.

    source: the image.  places: of each of its dimensions the one of the padded image,
    None for one of a single element.  begins: of the tile in the padded image.  around:
    the dimensions of that with a border.
    """

    tile: Tile
    source: ir.Value
    places: tuple[int | None, ...]
    begins: tuple[ir.Value | int, ...]
    around: Mapping[int, Around]

    @staticmethod
    def of(tile: Tile) -> Inside | None:
        """None where a tile's left operand is read as it is."""
        value, begins = origin(tile.left)
        owner = value.owner
        if not isinstance(owner, ir.Block) and APART in owner.attributes:
            value = owner.operands[0]
            owner = value.owner
        if isinstance(owner, ir.Block) or not is_pad(owner.opview):
            return None
        if not is_at_source(owner.opview):
            return None
        source, reading, _ = bordered(owner.opview)
        whole, inside = (ir.RankedTensorType(v.type).shape for v in (value, source))
        lows, sizes = [0] * len(whole), list(whole)
        places: list[int | None] = []
        for expr, size in zip(reading.results, inside, strict=True):
            dim = next(iter(dims_of(expr)), None)
            places.append(dim)
            if dim is not None:
                lows[dim], sizes[dim] = -offset_of(expr), size
        found = {
            d: around_of(tile, d, begins[d], lows[d], sizes[d])
            for d, size in enumerate(whole)
            if sizes[d] != size
        }
        return Inside(tile, source, tuple(places), tuple(begins), found)

    @property
    def along(self) -> Around | None:
        """The dimension that the tile's rows go along."""
        return next((x for x in self.around.values() if x.row_step), None)

    def number(self, begin: int | None, kind: ir.VectorType) -> Factor:
        """What a row of the tile has at a step of the sum.

        begin: where a tile at an end of a row begins, None within it.
        """
        indexing = maps(self.tile.op)[self.tile.shape.left]
        moved = [as_index(start) for start in self.begins]  # in the image
        for p, around in self.around.items():
            at_end = begin is not None and around.row_step
            start = index(begin or 0) if at_end else moved[p]
            moved[p] = add(start, index(-around.low))

        def read(ivs: Values, row: int) -> ir.Value:
            del row
            at = [
                index(0)
                if p is None
                else add(moved[p], apply(indexing.results[p], ivs))
                for p in self.places
            ]
            found = None if begin is None else self.crossing(begin, ivs)
            if found is None:
                return vector.broadcast(kind, tensor.extract(self.source, at))
            dim, around = found
            here = at[dim]
            inside = arith.cmpi(
                arith.CmpIPredicate.ult, here, index(around.size)
            )  # also of one below zero
            at[dim] = arith.select(inside, here, index(0))
            number = tensor.extract(self.source, at)
            chosen = arith.select(inside, number, zero_of(kind.element_type))
            return vector.broadcast(kind, chosen)

        return read

    def crossing(self, begin: int, ivs: Values) -> tuple[int, Around] | None:
        """Where a row of a tile at an end leaves the image: a dimension of that.

        None for a row that is within it at all steps of the sum.
        """
        row, around = row_of(self.tile, ivs), self.along
        assert around is not None
        last = self.tile.shape.extents[around.dim] - 1
        if all(around.is_inside(begin, row, n) for n in (0, last)):
            return None
        (place,) = (p for p, each in self.around.items() if each is around)
        return self.places.index(place), around


def row_of(tile: Tile, ivs: Values) -> int:
    """The row of a tile at an end, whose rows are known."""
    assert tile.row is not None
    row = constant_of(ivs[tile.row])
    assert row is not None, "the rows of a tile at an end are numbers"
    return row


def offset_of(expr: ir.AffineExpr) -> int:
    """The number in dim + number."""
    if isinstance(expr, ir.AffineAddExpr):
        return ir.AffineConstantExpr(expr.rhs).value
    return 0


def around_of(
    tile: Tile, place: int, begin: ir.Value | int, low: int, size: int
) -> Around:
    """A dimension of the padded image, from where the tile begins."""
    expr = maps(tile.op)[tile.shape.left].results[place]
    (dim,) = [d for d in dims_of(expr) if d in tile.shape.reduced]
    step = coefficient(expr, dim)
    rows = 0 if tile.row is None else coefficient(expr, tile.row)
    assert step and rows is not None, "a border that can be left out"
    return Around(begin, low, size, dim, step, rows)


def count_of(tile: Tile, ends: Around) -> int:
    """Rows of all tiles together: windows of the padded image."""
    value, _ = origin(tile.left)
    expr = maps(tile.op)[tile.shape.left].results
    (dim,) = (d for d, e in enumerate(expr) if ends.dim in dims_of(e))
    whole = ir.RankedTensorType(value.type).shape[dim]
    reach = (tile.shape.extents[ends.dim] - 1) * ends.step
    return (whole - reach - 1) // ends.row_step + 1
