"""The left operand of a tile, an image that is read where it lies, without its border.

pad[y + k, s x + l]  ->  x[y + k - low, s x + l - low], where that is within x
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nanoloom.kernels.linalg_query import BEHIND, bordered, dims_of, is_pad, maps
from nanoloom.mlir import arith, ir, tensor
from nanoloom.nest.guard import Guard
from nanoloom.vector.access import (
    add,
    apply,
    coefficient,
    constant_of,
    index,
    offset_of,
)
from nanoloom.vector.guard import Bounds, steps_within
from nanoloom.vector.nanokernel.tile.row_position import RowPosition
from nanoloom.vector.nanokernel.tile.tile import Tile, as_index, origin
from nanoloom.vector.store_at import APART, is_at_source

Values = list[ir.Value]


@dataclass(frozen=True)
class PaddingBounds:
    """A dimension of an image with a border, as a tile reads it.

    begin: of the tile, in the padded image.  low, size: where the image is in it; a
    value where only a run knows.  high: how wide the border behind it is.  steps: how
    far each axis of the sum goes along it.  reach: how far all of them go.  row_step:
    how far the tile's rows do, 0 where they do not.
    """

    begin: ir.Value | int
    low: int
    high: int
    size: ir.Value | int
    steps: Mapping[int, int]
    reach: int
    row_step: int

    def is_inside(self, begin: int, row: int) -> bool:
        """Whether all steps of a row are within; begin: of the tile.

        Of an image of any size, whether none is in front of it.
        """
        at = begin + row * self.row_step - self.low
        size = self.size if isinstance(self.size, int) else at + self.reach + 1
        return bool(Guard(at, 1, size, self.reach).steps(1))

    def may_leave(self, tile: Tile, row: int) -> bool:
        """Whether a row of a tile may read what is beside an image of any size."""
        first, last = (-(-n // self.row_step) for n in (self.low, self.high))
        fewest = tile.plan.rows if tile.row_count is None else tile.fewest
        before = row < first and tile.place is not RowPosition.LAST
        return before or row >= fewest - last

    @property
    def end(self) -> ir.Value:
        """Where the image ends in the padded one."""
        return add(as_index(self.size), index(self.low))

    def limits(self, extents: Sequence[int]) -> tuple[int, Bounds]:
        """The axis of the sum, and its steps that are within the image, where rows do
        not matter; extents: of all axes."""
        ((dim, step),) = self.steps.items()
        begin = add(as_index(self.begin), index(-self.low))
        extent = index(extents[dim])
        return dim, steps_within(begin, step, as_index(self.size), extent)


@dataclass(frozen=True)
class UnpaddedImage:
    """The left operand of a tile, a border that is left out.

    source: the image.  places: of each of its dimensions the one of the padded image,
    None for one of a single element.  begins: of the tile in the padded image.  around:
    the dimensions of that with a border.  border: its number, as text.
    """

    tile: Tile
    source: ir.Value
    places: tuple[int | None, ...]
    begins: tuple[ir.Value | int, ...]
    around: Mapping[int, PaddingBounds]
    border: str

    @staticmethod
    def of(tile: Tile) -> UnpaddedImage | None:
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
        source, reading, border = bordered(owner.opview)
        places = [next(iter(dims_of(e)), None) for e in reading.results]
        behind = ir.DenseI64ArrayAttr(owner.attributes[BEHIND])
        found: dict[int, PaddingBounds] = {}
        for place, (dim, expr) in enumerate(zip(places, reading.results, strict=True)):
            wide = (0, 0) if dim is None else (-offset_of(expr), behind[dim])
            if dim is not None and any(wide):
                size = size_of(source, place)
                found[dim] = padding_bounds_of(tile, dim, begins[dim], wide, size)
        return UnpaddedImage(tile, source, tuple(places), tuple(begins), found, border)

    @property
    def along(self) -> PaddingBounds | None:
        """The dimension that the tile's rows go along."""
        return next((x for x in self.around.values() if x.row_step), None)

    @property
    def limits(self) -> dict[int, Bounds]:
        """The steps of a sum that are within the image, where rows do not matter."""
        across = [each for each in self.around.values() if not each.row_step]
        return dict(each.limits(self.tile.shape.extents) for each in across)

    @property
    def outside(self) -> ir.Value:
        """The number of the border."""
        element = ir.RankedTensorType(self.source.type).element_type
        whole = isinstance(element, ir.IntegerType)
        return arith.constant(element, int(self.border) if whole else 0.0)

    def at(self, begin: ir.Value | int | None) -> Pixels:
        """The image for a tile that begins at a place of a row; None: within it."""
        moved = [as_index(start) for start in self.begins]
        for p, around in self.around.items():
            at_end = begin is not None and around.row_step
            start = as_index(begin or 0) if at_end else moved[p]
            moved[p] = add(start, index(-around.low))
        return Pixels(self, begin, moved)


@dataclass(frozen=True)
class Pixels:
    """The numbers of an image at the steps of a tile's sums.

    begin: where a tile at an end of a row begins, None within it; a value where only a
    run knows.  moved: the place in the image of its first number.
    """

    image: UnpaddedImage
    begin: ir.Value | int | None
    moved: Values

    def place(self, ivs: Values) -> Values:
        """Where a number is, if it is inside."""
        tile = self.image.tile
        results = maps(tile.op)[tile.shape.left].results
        return [
            index(0) if p is None else add(self.moved[p], apply(results[p], ivs))
            for p in self.image.places
        ]

    def number(self, ivs: Values, row: int) -> ir.Value:
        """What a row of the tile has at a step of the sum."""
        source, at = self.image.source, self.place(ivs)
        found = self.crossing(ivs, row)
        if found is None:
            return tensor.extract(source, at)
        dim, around = found
        here = at[dim]
        inside = arith.cmpi(
            arith.CmpIPredicate.ult, here, as_index(around.size)
        )  # also of one below zero
        at[dim] = arith.select(inside, here, index(0))
        number = tensor.extract(source, at)
        return arith.select(inside, number, self.image.outside)

    def crossing(self, ivs: Values, row: int) -> tuple[int, PaddingBounds] | None:
        """Where a row of a tile at an end leaves the image: a dimension of that.

        None for a row that is within it at all steps of the sum.
        """
        if self.begin is None:
            return None
        image, begin = self.image, self.begin
        around = image.along
        assert around is not None
        if isinstance(begin, int):
            at = row_of(image.tile, ivs)
            if around.is_inside(begin, at):
                return None
        elif not around.may_leave(image.tile, row):
            return None
        (place,) = (p for p, each in image.around.items() if each is around)
        return image.places.index(place), around


def row_of(tile: Tile, ivs: Values) -> int:
    """The row of a tile at an end, whose rows are known."""
    assert tile.row is not None
    row = constant_of(ivs[tile.row])
    assert row is not None, "the rows of a tile at an end are numbers"
    return row


def size_of(image: ir.Value, place: int) -> ir.Value | int:
    """How far an image goes along one of its dimensions."""
    kind = ir.RankedTensorType(image.type)
    if kind.is_dynamic_dim(place):
        return tensor.dim(image, index(place))
    return kind.shape[place]


def padding_bounds_of(
    tile: Tile,
    place: int,
    begin: ir.Value | int,
    border: tuple[int, int],
    size: ir.Value | int,
) -> PaddingBounds:
    """A dimension of the padded image, from where the tile begins.

    border: how wide it is in front and behind.
    """
    expr = maps(tile.op)[tile.shape.left].results[place]
    dims = [d for d in tile.shape.reduced if d in dims_of(expr)]
    steps = {d: factor for d in dims if (factor := coefficient(expr, d))}
    reach = sum(n * (tile.shape.extents[d] - 1) for d, n in steps.items())
    rows = 0 if tile.row is None else coefficient(expr, tile.row)
    assert steps and rows is not None, "a border that can be left out"
    return PaddingBounds(begin, *border, size, steps, reach, rows)


def count_of(tile: Tile, ends: PaddingBounds) -> int:
    """Rows of all tiles together: windows of the padded image."""
    value, _ = origin(tile.left)
    expr = maps(tile.op)[tile.shape.left].results
    (dim,) = (d for d, e in enumerate(expr) if ends.steps.keys() & dims_of(e))
    whole = ir.RankedTensorType(value.type).shape[dim]
    return (whole - ends.reach - 1) // ends.row_step + 1
