"""The left operand of a tile, an image that is read where it lies, without its border.

pad[y + k, s x + l]  ->  x[y + k - low, s x + l - low], where that is within x
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nanoloom.kernels.structure import BEHIND, bordered, dims_of, is_pad, maps
from nanoloom.mlir import arith, ir, tensor, vector
from nanoloom.vector.access import add, apply, coefficient, constant_of, index
from nanoloom.vector.nanokernel.fma import Factor
from nanoloom.vector.nanokernel.tile.in_row import InRow
from nanoloom.vector.nanokernel.tile.tile import Tile, as_index, origin, zero_of
from nanoloom.vector.store_at import APART, is_at_source

Values = list[ir.Value]


@dataclass(frozen=True)
class Around:
    """A dimension of an image with a border, as a tile reads it.

    begin: of the tile, in the padded image.  low, size: where the image is in it; a
    value where only a run knows.  high: how wide the border behind it is.  dim, step:
    the axis of the sum that goes along it, and how far.  row_step: the same of the
    tile's rows, 0 where they do not.
    """

    begin: ir.Value | int
    low: int
    high: int
    size: ir.Value | int
    dim: int
    step: int
    row_step: int

    def is_inside(self, begin: int, row: int, number: int) -> bool:
        """Whether a row's step of the sum is within the image; begin: of the tile.

        Of an image of any size, whether it is not in front of it.
        """
        at = begin + row * self.row_step + number * self.step - self.low
        return at >= 0 and not (isinstance(self.size, int) and at >= self.size)

    def may_leave(self, tile: Tile, row: int) -> bool:
        """Whether a row of a tile may read what is beside an image of any size."""
        first, last = (-(-n // self.row_step) for n in (self.low, self.high))
        fewest = tile.plan.rows if tile.row_count is None else tile.fewest
        before = row < first and tile.place is not InRow.LAST
        return before or row >= fewest - last

    @property
    def end(self) -> ir.Value:
        """Where the image ends in the padded one."""
        return add(as_index(self.size), index(self.low))

    def limits(self, extent: int) -> tuple[ir.Value | int, ir.Value | int]:
        """The steps of the sum that are within the image, where rows do not matter."""
        if isinstance(self.begin, int) and isinstance(self.size, int):
            steps = [n for n in range(extent) if self.is_inside(self.begin, 0, n)]
            return (steps[0], steps[-1] + 1) if steps else (0, 0)

        def first_from(edge: ir.Value) -> ir.Value:
            zero = index(0)
            ahead = arith.maxsi(arith.subi(edge, as_index(self.begin)), zero)
            if self.step > 1:
                ahead = arith.ceildivui(ahead, index(self.step))
            return arith.minui(ahead, index(extent))

        return first_from(index(self.low)), first_from(self.end)


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
        places = [next(iter(dims_of(e)), None) for e in reading.results]
        behind = ir.DenseI64ArrayAttr(owner.attributes[BEHIND])
        found: dict[int, Around] = {}
        for place, (dim, expr) in enumerate(zip(places, reading.results, strict=True)):
            border = (0, 0) if dim is None else (-offset_of(expr), behind[dim])
            if dim is not None and any(border):
                size = size_of(source, place)
                found[dim] = around_of(tile, dim, begins[dim], border, size)
        return Inside(tile, source, tuple(places), tuple(begins), found)

    @property
    def along(self) -> Around | None:
        """The dimension that the tile's rows go along."""
        return next((x for x in self.around.values() if x.row_step), None)

    def number(self, begin: ir.Value | int | None, kind: ir.VectorType) -> Factor:
        """What a row of the tile has at a step of the sum.

        begin: where a tile at an end of a row begins, None within it; a value where
        only a run knows.
        """
        indexing = maps(self.tile.op)[self.tile.shape.left]
        moved = [as_index(start) for start in self.begins]  # in the image
        for p, around in self.around.items():
            at_end = begin is not None and around.row_step
            start = as_index(begin or 0) if at_end else moved[p]
            moved[p] = add(start, index(-around.low))

        def read(ivs: Values, row: int) -> ir.Value:
            at = [
                index(0)
                if p is None
                else add(moved[p], apply(indexing.results[p], ivs))
                for p in self.places
            ]
            found = None if begin is None else self.crossing(begin, ivs, row)
            if found is None:
                return vector.broadcast(kind, tensor.extract(self.source, at))
            dim, around = found
            here = at[dim]
            inside = arith.cmpi(
                arith.CmpIPredicate.ult, here, as_index(around.size)
            )  # also of one below zero
            at[dim] = arith.select(inside, here, index(0))
            number = tensor.extract(self.source, at)
            chosen = arith.select(inside, number, zero_of(kind.element_type))
            return vector.broadcast(kind, chosen)

        return read

    def crossing(
        self, begin: ir.Value | int, ivs: Values, row: int
    ) -> tuple[int, Around] | None:
        """Where a row of a tile at an end leaves the image: a dimension of that.

        None for a row that is within it at all steps of the sum.
        """
        around = self.along
        assert around is not None
        last = self.tile.shape.extents[around.dim] - 1
        if isinstance(begin, int):
            at = row_of(self.tile, ivs)
            if all(around.is_inside(begin, at, n) for n in (0, last)):
                return None
        elif not around.may_leave(self.tile, row):
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


def size_of(image: ir.Value, place: int) -> ir.Value | int:
    """How far an image goes along one of its dimensions."""
    kind = ir.RankedTensorType(image.type)
    if kind.is_dynamic_dim(place):
        return tensor.dim(image, index(place))
    return kind.shape[place]


def around_of(
    tile: Tile,
    place: int,
    begin: ir.Value | int,
    border: tuple[int, int],
    size: ir.Value | int,
) -> Around:
    """A dimension of the padded image, from where the tile begins.

    border: how wide it is in front and behind.
    """
    expr = maps(tile.op)[tile.shape.left].results[place]
    (dim,) = [d for d in dims_of(expr) if d in tile.shape.reduced]
    step = coefficient(expr, dim)
    rows = 0 if tile.row is None else coefficient(expr, tile.row)
    assert step and rows is not None, "a border that can be left out"
    return Around(begin, *border, size, dim, step, rows)


def count_of(tile: Tile, ends: Around) -> int:
    """Rows of all tiles together: windows of the padded image."""
    value, _ = origin(tile.left)
    expr = maps(tile.op)[tile.shape.left].results
    (dim,) = (d for d, e in enumerate(expr) if ends.dim in dims_of(e))
    whole = ir.RankedTensorType(value.type).shape[dim]
    reach = (tile.shape.extents[ends.dim] - 1) * ends.step
    return (whole - reach - 1) // ends.row_step + 1
