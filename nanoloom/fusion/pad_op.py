"""A block of a tensor with what lies around it: what a pad makes.

    p[i, j] = x[i - 1, j - 1] inside, 0 outside

It is a generic whose body asks where it is (guarded_reads.py says of which readers).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nanoloom.fusion.group import is_movable
from nanoloom.fusion.insert_in_place import Insertion, only_user
from nanoloom.fusion.slices import SLICE, static
from nanoloom.ir.linalg_query import (
    BEHIND,
    CROPPED,
    PAD,
    Op,
    all_dims,
    base,
    filled_with,
    inputs,
    is_copy,
    is_fill,
    is_read_in_place,
    maps,
)
from nanoloom.ir.mlir import arith, ir, linalg, tensor
from nanoloom.ir.regrouped_axes import matched
from nanoloom.linalg.builder.pointwise import pointwise
from nanoloom.linalg.builder.reassociation import expand

Read = tuple[Op, int]  # a generic, and which of its operands


@dataclass(frozen=True)
class Border:
    """A block of a tensor and what lies around it, both without some extents of 1.

    source: what the block is, from its offsets `begin` on.  places: for each dimension
    of the source, which one of the padded tensor it is; None for one of a single
    element.  shape: of the padded tensor.  low, sizes: where the block is in it.
    number: what is around it; a tensor of it where only a run knows that.
    """

    source: ir.Value
    begin: tuple[int, ...]
    places: tuple[int | None, ...]
    shape: tuple[int, ...]
    low: tuple[int, ...]
    sizes: tuple[int, ...]
    number: ir.Attribute | ir.Value

    @property
    def lies_along(self) -> bool:
        """Whether rows have no border of their own, and are read as they are."""
        row = len(self.shape) - 1
        if self.sizes == self.shape or row < 0:
            return False
        whole = self.sizes[row] == self.shape[row]
        return whole and self.places[-1:] == (row,) and row not in self.places[:-1]

    @property
    def is_cropped(self) -> bool:
        """Whether the source has other numbers where the border is: what is around the
        block has to be asked for, and is not what the source ends with."""
        extents = ir.RankedTensorType(self.source.type).shape
        for begin, place, extent in zip(self.begin, self.places, extents, strict=True):
            if place is None:
                continue
            end = begin + self.sizes[place]
            if (self.low[place] and begin) or (self.behind[place] and end < extent):
                return True
        return False

    @property
    def is_turned(self) -> bool:
        """Whether what is read has other axes along its rows than its source."""
        places = [p for p in self.places if p is not None]
        return sorted(places) != places

    @property
    def alone(self) -> list[int]:
        """Axes with a border around a single place, which the source has no axis of."""
        found = enumerate(zip(self.sizes, self.shape, strict=True))
        places = [d for d, (size, whole) in found if size == 1 < whole]
        return [d for d in places if d not in self.places]

    def with_rows(self) -> Border:
        """The same around a source that has an axis for each with a border."""
        if not self.alone:
            return self
        kind = ir.RankedTensorType(self.source.type)
        shape = [1] * len(self.alone) + kind.shape
        first = list(range(len(self.alone) + 1))
        groups = [first, *([d] for d in range(len(first), len(shape)))]
        return replace(
            self,
            source=expand(self.source, groups, shape),
            begin=(0,) * len(self.alone) + self.begin,
            places=(*self.alone, *self.places),
        )

    def made(self) -> ir.Value:
        """The padded tensor, as one operation here."""
        element = ir.RankedTensorType(self.source.type).element_type
        target, rank = tensor.empty(list(self.shape), element), len(self.shape)
        given = [x for x in [self.number] if isinstance(x, ir.Value)]
        first = [ir.AffineConstantExpr.get(0)]
        places = [ir.AffineMap.get(rank, 0, first * len(shape_of(x))) for x in given]
        value = pointwise(given, target, self.point, places)
        op = value.owner
        assert not isinstance(op, ir.Block)
        op.attributes[PAD] = ir.AffineMapAttr.get(self.reading)
        op.attributes[BEHIND] = ir.DenseI64ArrayAttr.get(self.behind)
        if self.is_cropped:
            op.attributes[CROPPED] = ir.UnitAttr.get()
        return value

    @property
    def behind(self) -> list[int]:
        """How wide the border is at the end of each axis."""
        rows = zip(self.shape, self.low, self.sizes, strict=True)
        return [whole - low - size for whole, low, size in rows]

    @property
    def reading(self) -> ir.AffineMap:
        """Where in the source each place of the padded tensor is, if in it at all."""
        results = [
            ir.AffineConstantExpr.get(begin)
            if place is None
            else ir.AffineDimExpr.get(place) + (begin - self.low[place])
            for place, begin in zip(self.places, self.begin, strict=True)
        ]
        return ir.AffineMap.get(len(self.shape), 0, results)

    def point(self, *given: ir.Value) -> ir.Value:
        """The body: the nearest number of the block, taken if it is at this place.

        given: the number of the border, where only a run knows it.
        """
        at = [linalg.IndexOp(d).result for d in range(len(self.shape))]
        conditions: list[ir.Value] = []
        for d, (low, size) in enumerate(zip(self.low, self.sizes, strict=True)):
            moved = arith.addi(at[d], index(-low)) if low else at[d]
            at[d] = moved
            if low:
                conditions.append(arith.cmpi(SIGNED_GE, moved, index(0)))
                at[d] = arith.maxsi(at[d], index(0))
            if low + size < self.shape[d]:
                conditions.append(arith.cmpi(SIGNED_LT, moved, index(size)))
                at[d] = arith.minsi(at[d], index(size - 1))
        places = [
            add(index(0) if p is None else at[p], begin)
            for p, begin in zip(self.places, self.begin, strict=True)
        ]
        found = tensor.extract(self.source, places)
        inside = conditions[0]
        for each in conditions[1:]:
            inside = arith.andi(inside, each)
        around = given or (arith.constant(found.type, self.number),)
        return arith.select(inside, found, *around)


def border_around(
    insertion: Op,
    read: Read,
    part: ir.Value,
    value: ir.Value | None = None,
    dims: Sequence[int | None] = (),
) -> Border | None:
    """What an insertion puts around a tensor, as a reader has both.

    part: what is inserted, maybe with extents of 1.  value: what it is a copy of, each
    dimension of which is one of its.
    """
    number = number_around(insertion)
    source, begin, axes = cut_from(part if value is None else value)
    owner = source.owner
    free = not isinstance(owner, ir.Block) and is_movable(owner.opview)
    if number is None or free:
        return None
    whole, block = shape_of(insertion.operation.results[0]), Insertion.of(insertion)
    shape = shape_of(inputs(read[0])[read[1]])
    kept, found = matched(shape, whole), matched(shape_of(part), block.sizes)
    inserted = found if value is None else [found[d] for d in dims if d is not None]
    places = [None if axis is None else inserted[axis] for axis in axes]
    return Border(
        source,
        begin,
        tuple(kept.index(p) if p in kept else None for p in places),
        shape,
        tuple(block.offsets[d] for d in kept),
        tuple(block.sizes[d] for d in kept),
        number,
    )


def number_around(insertion: Op) -> ir.Attribute | ir.Value | None:
    """What a new tensor holds everywhere that an insertion puts another into: a
    constant, or a tensor of one number."""
    _, into, *places = insertion.operation.operands
    owner = base(into).owner
    if isinstance(owner, ir.Block) or places or not is_dense(insertion):
        return None
    if is_fill(owner.opview):
        return filled_with(owner.opview).attributes["value"]
    if not is_copy(owner.opview) or all_dims(maps(owner.opview)[0]):
        return None
    return inputs(owner.opview)[0]


def cut_from(
    value: ir.Value,
) -> tuple[ir.Value, tuple[int, ...], Sequence[int | None]]:
    """What a value is a slice of, where that begins, and for each dimension of it which
    one it is of the slice; of what is none itself."""
    rank, cut = len(shape_of(value)), value.owner
    itself = value, (0,) * rank, list(range(rank))
    if isinstance(cut, ir.Block) or cut.name != SLICE or len(list(cut.operands)) > 1:
        return itself
    alone = only_user(value) is not None and is_dense(cut.opview)
    if not alone and not is_read_in_place(cut.opview):
        return itself
    sizes = static(cut.opview, "sizes")
    kept = matched(shape_of(value), sizes)
    axes = [kept.index(d) if d in kept else None for d in range(len(sizes))]
    return cut.operands[0], tuple(static(cut.opview, "offsets")), axes


def is_dense(op: Op) -> bool:
    """Whether a slice or an insertion takes every element of a block."""
    return set(static(op, "strides")) <= {1}


def shape_of(value: ir.Value) -> tuple[int, ...]:
    return tuple(ir.RankedTensorType(value.type).shape)


SIGNED_GE, SIGNED_LT = arith.CmpIPredicate.sge, arith.CmpIPredicate.slt


def index(value: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), value)


def add(value: ir.Value, number: int) -> ir.Value:
    return arith.addi(value, index(number)) if number else value
