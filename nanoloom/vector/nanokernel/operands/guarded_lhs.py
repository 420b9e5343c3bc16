"""The left operand of a tile where it is padded: read where it lies, guarded.

    pad[y + k, s x + l]  ->  x[y + k - low, s x + l - low] within x, the fill elsewhere

Its numbers are read one by one, or in groups along a row: such a group is put together
of what is within and of the fill.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nanoloom.ir.access import (
    add,
    apply,
    as_index,
    coefficient,
    constant_of,
    index,
    offset_of,
)
from nanoloom.ir.linalg_query import BEHIND, bordered, dims_of, is_pad, maps
from nanoloom.ir.mlir import arith, ir, made_by, tensor, vector
from nanoloom.nest.guard import Guard
from nanoloom.vector.guard import Bounds, GuardedDim
from nanoloom.vector.nanokernel.instructions import word_of
from nanoloom.vector.nanokernel.k_groups import Row
from nanoloom.vector.nanokernel.tile.tile import (
    Tile,
    origin,
    read_vector,
)
from nanoloom.vector.store_at import APART, is_at_source
from nanoloom.vector.tile_points import with_value

Values = list[ir.Value]


@dataclass(frozen=True)
class GuardedLhs:
    """The left operand of a tile, a pad that is in no memory.

    source: what is within.  places: of each of its dimensions the one of the padded
    tensor, None for one of a single element.  begins: of the tile in the padded tensor.
    around: the dimensions of that with padding.  number: the fill, as text.
    """

    tile: Tile
    source: ir.Value
    places: tuple[int | None, ...]
    begins: tuple[ir.Value | int, ...]
    around: Mapping[int, GuardedDim]
    number: str

    @staticmethod
    def of(tile: Tile) -> GuardedLhs | None:
        """None where a tile's left operand is read as it is."""
        value, begins = origin(tile.left)
        owner = made_by(value)
        if owner is not None and APART in owner.attributes:
            value = owner.operands[0]
            owner = made_by(value)
        if owner is None or not is_pad(owner.opview):
            return None
        if not is_at_source(owner.opview):
            return None
        source, reading, number = bordered(owner.opview)
        places = [next(iter(dims_of(e)), None) for e in reading.results]
        behind = ir.DenseI64ArrayAttr(owner.attributes[BEHIND])
        found: dict[int, GuardedDim] = {}
        for place, (dim, expr) in enumerate(zip(places, reading.results, strict=True)):
            wide = (0, 0) if dim is None else (-offset_of(expr), behind[dim])
            if dim is not None and any(wide):
                size = size_of(source, place)
                found[dim] = guarded_dim(tile, dim, begins[dim], wide, size)
        return GuardedLhs(tile, source, tuple(places), tuple(begins), found, number)

    @property
    def along(self) -> GuardedDim | None:
        """The dimension that the tile's rows go along."""
        return next((x for x in self.around.values() if x.row_step), None)

    @property
    def limits(self) -> dict[int, Bounds]:
        """The steps of a sum that are within, where rows do not matter."""
        across = [each for each in self.around.values() if not each.row_step]
        return dict(each.limits(self.tile.shape.extents) for each in across)

    @property
    def in_groups(self) -> bool:
        """Whether neighbours along a row are steps of the innermost sum: along the
        one that tiles may leave, or where none is around a row."""
        along, last = self.along, self.tile.shape.reduced[-1]
        if along is not None:
            return last in along.steps
        return all(last not in each.steps for each in self.around.values())

    @property
    def fill(self) -> ir.Value:
        element = ir.RankedTensorType(self.source.type).element_type
        whole = isinstance(element, ir.IntegerType)
        number = int(self.number) if whole else float(self.number)
        return arith.constant(element, number)

    def at(self, begin: ir.Value | int | None) -> GuardedRead:
        """For a tile that begins at a place of a row; None: within."""
        moved = [as_index(start) for start in self.begins]
        for p, around in self.around.items():
            at_end = begin is not None and around.row_step
            start = as_index(begin or 0) if at_end else moved[p]
            moved[p] = add(start, index(-around.low))
        return GuardedRead(self, begin, moved)

    @property
    def count(self) -> int:
        """Rows of all tiles together: windows of the padded tensor."""
        along, tile = self.along, self.tile
        assert along is not None, "rows go along a padded dimension"
        value, _ = origin(tile.left)
        expr = maps(tile.op)[tile.shape.left].results
        (dim,) = (d for d, e in enumerate(expr) if along.steps.keys() & dims_of(e))
        whole = ir.RankedTensorType(value.type).shape[dim]
        return (whole - along.reach - 1) // along.row_step + 1


@dataclass(frozen=True)
class GuardedRead:
    """What the steps of a tile's sums read of its left operand.

    begin: where a tile at an end of a row begins, None within; a value where only a
    run knows.  moved: the place of its first number in what is within.
    """

    lhs: GuardedLhs
    begin: ir.Value | int | None
    moved: Values

    def place(self, ivs: Values) -> Values:
        """Where a number is, if it is within."""
        tile = self.lhs.tile
        results = maps(tile.op)[tile.shape.left].results
        return [
            index(0) if p is None else add(self.moved[p], apply(results[p], ivs))
            for p in self.lhs.places
        ]

    def number(self, ivs: Values, row: int) -> ir.Value:
        """What a row of the tile has at a step of the sum."""
        source, at = self.lhs.source, self.place(ivs)
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
        return arith.select(inside, number, self.lhs.fill)

    def group(self, row: Row) -> ir.Value:
        """Neighbours that are steps of a sum, in one short vector."""
        source, at = self.lhs.source, self.place(row.ivs)
        found = self.crossing(row.ivs, row.place_in_tile)
        if found is None:
            return read_vector(source, at, row.group, None)
        dim, around = found
        begin, size = constant_of(at[dim]), around.size
        if begin is None or not isinstance(size, int) or size < row.group:
            return self.gathered(row)
        inside = min(max(begin, 0), size - row.group)
        at[dim] = index(inside)
        whole = read_vector(source, at, row.group, None)
        return shifted(whole, inside - begin, self.lhs.fill)

    def gathered(self, row: Row) -> ir.Value:
        """A group of which only a run knows how much is within."""
        dim, numbers = row.tile.shape.reduced[-1], list[ir.Value]()
        for g in range(row.group):
            ivs = with_value(row.ivs, dim, add(row.ivs[dim], index(g)))
            numbers.append(self.number(ivs, row.place_in_tile))
        kind = ir.VectorType.get([row.group], numbers[0].type)
        return vector.from_elements(kind, numbers)

    def crossing(self, ivs: Values, row: int) -> tuple[int, GuardedDim] | None:
        """Where a row of a tile at an end may leave what is within: a dimension of it.

        None for a row that stays within at all steps of the sum.
        """
        lhs, begin, along = self.lhs, self.begin, self.lhs.along
        if begin is None:
            return None
        assert along is not None, "rows go along a padded dimension"
        tile, size = lhs.tile, along.size
        if isinstance(begin, int) and isinstance(size, int):
            at = begin + known_row(tile, ivs) * along.row_step - along.low
            if Guard(at, 1, size, along.reach).steps(1):
                return None
        else:
            fewest = tile.plan.rows if tile.row_count is None else tile.fewest
            if not along.may_leave(row, tile.ends, fewest):
                return None
        (place,) = (p for p, each in lhs.around.items() if each is along)
        return lhs.places.index(place), along


@dataclass(frozen=True)
class Fill:
    """What steps read that are not within at all."""

    lhs: GuardedLhs

    def number(self, ivs: Values, row: int) -> ir.Value:
        del ivs, row
        return self.lhs.fill

    def group(self, row: Row) -> ir.Value:
        fill = self.lhs.fill
        return vector.broadcast(ir.VectorType.get([row.group], fill.type), fill)


def shifted(whole: ir.Value, by: int, fill: ir.Value) -> ir.Value:
    """The group that begins so many numbers in front of one, or behind it, with the
    fill for the others: by shifts, as ports of shuffles are busy with products."""
    kind = ir.VectorType(whole.type)
    (count,) = kind.shape
    around = vector.broadcast(kind, fill)
    if not by:
        return whole
    if abs(by) >= count:
        return around
    bits = kind.element_type.width  # type: ignore[attr-defined] - MLIR's stubs know no widths
    word = ir.IntegerType.get_signless(bits * count)
    number, beside = (word_of(x) for x in (whole, around))
    far = arith.constant(word, bits * abs(by))
    rest = arith.constant(word, bits * (count - abs(by)))
    if by > 0:
        made = arith.ori(arith.shli(number, far), arith.shrui(beside, rest))
    else:
        made = arith.ori(arith.shrui(number, far), arith.shli(beside, rest))
    return vector.bitcast(kind, vector.broadcast(ir.VectorType.get([1], word), made))


def known_row(tile: Tile, ivs: Values) -> int:
    """The row of a tile at an end, whose rows are known."""
    assert tile.row is not None
    row = constant_of(ivs[tile.row])
    assert row is not None, "the rows of a tile at an end are numbers"
    return row


def size_of(source: ir.Value, place: int) -> ir.Value | int:
    kind = ir.RankedTensorType(source.type)
    if kind.is_dynamic_dim(place):
        return tensor.dim(source, index(place))
    return kind.shape[place]


def guarded_dim(
    tile: Tile,
    place: int,
    begin: ir.Value | int,
    wide: tuple[int, int],
    size: ir.Value | int,
) -> GuardedDim:
    """A dimension of the padded tensor, from where the tile begins.

    wide: its padding in front and behind.
    """
    expr = maps(tile.op)[tile.shape.left].results[place]
    dims = [d for d in tile.shape.reduced if d in dims_of(expr)]
    steps = {d: factor for d in dims if (factor := coefficient(expr, d))}
    reach = sum(n * (tile.shape.extents[d] - 1) for d, n in steps.items())
    rows = 0 if tile.row is None else coefficient(expr, tile.row)
    assert steps and rows is not None, "padding that can be left out"
    return GuardedDim(begin, *wide, size, steps, reach, rows)
