"""A register tile before it becomes instructions: its operands and where they lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from nanoloom.dynamic.dynamic_kernel import ARGUMENT
from nanoloom.ir.access import (
    add,
    apply,
    as_index,
    function_around,
    index,
    multiply,
)
from nanoloom.ir.linalg_query import (
    Op,
    filled_with,
    input_count,
    is_fill,
    is_generic,
    map_dims,
    maps,
)
from nanoloom.ir.mlir import arith, ir, made_by, tensor, vector
from nanoloom.linalg.builder.tensor_slices import bounds_of
from nanoloom.nest.contraction import Contraction
from nanoloom.nest.extent import Lanes
from nanoloom.schedule.language import Nanokernel, Prefetch
from nanoloom.vector.dialect import PACKED
from nanoloom.vector.guard import Ends
from nanoloom.vector.nanokernel.tile.extents import extent_is_not_one
from nanoloom.vector.tile_points import with_value


@dataclass
class Tile:
    """rows x (vectors * lanes) results of a contraction inside its loops.

    row: the dimension that the register tile's rows run along (None: a single row).
    row_count, column_count: how many are inside the result (values; the tile may reach
    over its edge), None where the tile is always full.  fetched: the arguments that
    come before they are read, with how far ahead.  left_copy: what is read in
    place of the left operand (convert_lhs.py), right_copy: in place of the right one
    (flat_panel.py).  of_rows: what rows add to sums by themselves (inner_products.py).
    fewest: rows that are inside the result, at least.  ends: where they may read
    padding of what is guarded (guarded_sums.py).
    """

    op: Op
    shape: Contraction
    plan: Nanokernel
    row: int | None
    row_count: ir.Value | None
    column_count: ir.Value | None
    fetched: Mapping[int, Prefetch]
    left_copy: ir.Value | None = None
    right_copy: ir.Value | None = None
    of_rows: tuple[ir.Value, ...] = ()
    fewest: int = 1
    ends: Ends = Ends.FRONT | Ends.BEHIND

    @property
    def sized(self) -> bool:
        """Whether it is in a kernel that is called for any size."""
        return ARGUMENT in function_around(self.op).attributes

    @property
    def left(self) -> ir.Value:
        """The left operand, or a copy of it in another type."""
        return self.left_copy or self.op.operation.operands[self.shape.left]

    def word_of(self, operand: ir.Value) -> Prefetch | None:
        """How an operand comes before it is read, None where it does not."""
        source, _ = origin(operand)
        if not isinstance(source.owner, ir.Block):
            return None
        found = self.fetched.get(ir.BlockArgument(source).arg_number)
        return found if found is not None and found.ahead else None

    @property
    def right(self) -> ir.Value:
        """The right operand, or the task's copy of it."""
        return self.right_copy or self.op.operation.operands[self.shape.right]

    @property
    def lanes(self) -> int:
        """Sums in a vector."""
        return self.plan.lanes.count

    @property
    def columns(self) -> int:
        return self.plan.vectors * self.lanes

    def lanes_of(self, element: ir.Type) -> Lanes:
        """Of vectors of another type that are as large as those of sums."""
        sums = ir.RankedTensorType(self.op.operation.operands[2].type).element_type
        return Lanes(self.lanes * sums.width // element.width)  # type: ignore[attr-defined]

    def ivs(self, row: ir.Value, column: ir.Value) -> list[ir.Value]:
        """Loop variables of the tile's own dimensions (reductions still zero)."""
        values = [index(0) for _ in self.shape.extents]
        if self.row is not None:
            values[self.row] = row
        values[self.shape.column] = column
        return values

    def at_row(self, ivs: list[ir.Value], row: ir.Value) -> list[ir.Value]:
        """Loop variables with the tile's row at a place."""
        if self.row is None:
            return ivs
        return with_value(ivs, self.row, row)

    def extent(self, dim: int) -> int | ir.Value:
        """How far a dimension of the sum goes, as far as that is known."""
        known = self.shape.extents[dim]
        if known >= 0:
            return known
        sides = zip(maps(self.op), self.op.operation.operands, strict=True)
        found = ((v, map_dims(m).index(dim)) for m, v in sides if dim in map_dims(m))
        value, place = next(found)
        return tensor.dim(value, index(place))

    @property
    def steps(self) -> int:
        """Of the sum."""
        return prod(self.shape.extents[d] for d in self.shape.reduced)

    def step(self, ivs: list[ir.Value]) -> ir.Value:
        """The number of a step of the sum, in the order of its loops."""
        number: ir.Value = index(0)
        for d in self.shape.reduced:
            number = add(multiply(number, index(self.shape.extents[d])), ivs[d])
        return number

    def row_index(self, row: int) -> ir.Value:
        """A row of the tile, the last one inside for those beyond the edge."""
        if self.row_count is None or row < self.fewest:
            return index(row)
        last = arith.subi(self.row_count, index(1))
        return arith.minui(index(row), last)

    @property
    def row_indices(self) -> list[ir.Value]:
        return [self.row_index(r) for r in range(self.plan.rows)]

    def mask(self, row: int, place: int) -> ir.Value | None:
        """Which lanes of a result vector are inside, None if all of them are.

        A row asks, but for those of which there are so many (fewest).
        """
        is_there = self.fewest > 1 and row < self.fewest
        asks = self.row_count is not None and not is_there
        count = self.column_count
        if not asks and count is None:
            return None
        left = (
            index(self.lanes)
            if count is None
            else arith.subi(count, index(place * self.lanes))
        )
        if asks:
            inside = arith.cmpi(arith.CmpIPredicate.ult, index(row), self.row_count)
            left = arith.select(inside, left, index(0))
        kind = ir.VectorType.get([self.lanes], ir.IntegerType.get_signless(1))
        return vector.create_mask(kind, [left])

    @property
    def right_masked(self) -> bool:
        """Whether vectors of the right operand may reach over its edge.

        A task's copy has room for whole ones.
        """
        return self.column_count is not None and self.right_copy is None

    def read_right(self, ivs: list[ir.Value], v: int) -> ir.Value:
        """A vector of a right operand that is not packed, at loop variables."""
        here = list(ivs)
        here[self.shape.column] = index(v * self.lanes)
        place = place_of(maps(self.op)[self.shape.right], here)
        return read_vector(self.right, place, self.lanes, self.right_mask(v))

    def right_mask(self, v: int) -> ir.Value | None:
        """Which lanes of the right operand's vector can be read, None if all can."""
        return self.mask(0, v) if self.right_masked else None


def tile_of(
    op: Op,
    shape: Contraction,
    plan: Nanokernel,
    fetched: Mapping[int, Prefetch],
) -> Tile:
    """Read a tiled contraction: which dimension has the rows, what reaches over."""
    result = op.operation.operands[2]
    out = maps(op)[2]
    row = next((d for d in reversed(shape.rows) if extent_is_not_one(op, d)), None)
    row_count = column_count = None
    for place, expr in enumerate(out.results):
        dim = expr.position  # type: ignore[attr-defined]
        kind = ir.RankedTensorType(result.type)
        static = None if kind.is_dynamic_dim(place) else kind.shape[place]
        if dim == row and static != plan.rows:
            row_count = tensor.dim(result, index(place))
        if dim == shape.column and static != plan.vectors * plan.lanes.count:
            column_count = tensor.dim(result, index(place))
    return Tile(op, shape, plan, row, row_count, column_count, fetched)


def origin(value: ir.Value) -> tuple[ir.Value, list[ir.Value | int]]:
    """The tensor that a chain of slices shows a part of, and where the part begins."""
    rank = ir.RankedTensorType(value.type).rank
    offsets: list[ir.Value | int] = [0] * rank
    while (op := made_by(value, "tensor.extract_slice")) is not None:
        offsets = [plus(a, b) for a, b in zip(offsets, bounds_of(op)[0], strict=True)]
        value = op.operands[0]
    return value, offsets


def plus(one: ir.Value | int, other: ir.Value | int) -> ir.Value | int:
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    return add(as_index(one), as_index(other))


def initial_number(value: ir.Value) -> ir.Value | None:
    """The constant that an accumulator starts from, if a fill made it."""
    owner = made_by(origin(value)[0])
    if owner is None or not is_fill(owner.opview):
        return None
    return filled_with(owner.opview).clone().results[0]


def read_vector(
    source: ir.Value, at: list[ir.Value], lanes: int, mask: ir.Value | None
) -> ir.Value:
    """`lanes` contiguous elements of the innermost dimension of a tensor or buffer."""
    kind = ir.ShapedType(source.type)
    element = kind.element_type
    last = ir.AffineMap.get(kind.rank, 0, [ir.AffineDimExpr.get(kind.rank - 1)])
    return vector.transfer_read(
        ir.VectorType.get([lanes], element),
        source,
        at,
        ir.AffineMapAttr.get(last),
        zero_of(element),
        ir.ArrayAttr.get([ir.BoolAttr.get(True)]),
        mask=mask,
    )


def zero_of(element: ir.Type) -> ir.Value:
    return arith.constant(element, 0.0 if isinstance(element, ir.FloatType) else 0)


def write_vector(
    value: ir.Value, target: ir.Value, at: list[ir.Value], mask: ir.Value | None
) -> ir.Value:
    """The tensor, or the buffer, with `lanes` contiguous elements replaced."""
    rank = ir.ShapedType(target.type).rank
    on_tensors = isinstance(target.type, ir.RankedTensorType)
    last = ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(rank - 1)])
    op = vector.TransferWriteOp(
        target.type if on_tensors else None,
        value,
        target,
        at,
        ir.AffineMapAttr.get(last),
        ir.ArrayAttr.get([ir.BoolAttr.get(True)]),
        mask=mask,
    )
    return op.results[0] if on_tensors else target


def place_of(indexing: ir.AffineMap, ivs: list[ir.Value]) -> list[ir.Value]:
    return [apply(e, ivs) for e in indexing.results]


def is_packed(logical: ir.Value) -> bool:
    """Whether a weight has a packed form."""
    return made_by(logical, PACKED) is not None


def packed_argument(logical: ir.Value) -> ir.Value:
    """The packed tensor of a logical weight."""
    owner = made_by(logical, PACKED)
    assert owner is not None, "the weight has no packed form"
    return owner.operands[0]


__all__ = ["Tile", "input_count", "is_generic", "tile_of"]
