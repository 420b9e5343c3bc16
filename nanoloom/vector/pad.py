"""Axes that are computed over a multiple: what "nanoloom.pad" does.

    for j in 0..70: y[j] += w[k, j]
      ->  part[k, 0..72] = w[k, 0..70], 0, 0
          for j in 0..72: t[j] += part[k, j];  y[0..70] = t[0..70]

Copies of operands (copy_operand.py) are made as large as the whole axis is at most, up
to the next multiple; behind what there is they hold a number that changes no result,
and of the results only what there is comes back.  Extents are constants then, in every
task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nanoloom.errors import Error
from nanoloom.ir.access import coefficient, index, offset_of
from nanoloom.ir.linalg_query import (
    Op,
    all_dims,
    body,
    dims_of,
    input_count,
    iterators,
    map_dims,
    maps,
)
from nanoloom.ir.mlir import arith, ir, made_by, memref
from nanoloom.nest.extent import Lanes
from nanoloom.nest.reduction import NUMBERS
from nanoloom.vector.combiner import number_of
from nanoloom.vector.extents import size
from nanoloom.vector.nanokernel.tile.extents import dynamic_size, most_number
from nanoloom.vector.reduction_init import fill_of
from nanoloom.vector.subview import subview
from nanoloom.vector.vector_copies import copy_rows, fill_rows
from nanoloom.vector.vectorize import note, noted, require_axis, require_lanes

PADDED, WITH = "nanoloom.padded", "nanoloom.padding"
MOST = 4096  # points of a multiple


def pad_stage(
    op: Op, axis: int, to: int, number: str, lanes: int, scalable: int
) -> None:
    """Note that an axis is computed over a multiple of `to`, its operands filled up."""
    require_axis(op, axis)
    require_lanes(lanes, scalable)
    if not 2 <= to <= MOST:
        raise Error(f"to = {to}: a number from 2 to {MOST} is wanted")
    if number not in NUMBERS:
        raise Error(f"number = {number}: one of {', '.join(NUMBERS)} is wanted")
    note(op, PADDED, *noted(op, PADDED), axis, to, lanes, scalable)
    words = op.operation.attributes
    before = list(words[WITH]) if WITH in words else []  # type: ignore[call-overload]
    words[WITH] = ir.ArrayAttr.get([*before, ir.StringAttr.get(number)])


@dataclass(frozen=True)
class Padding:
    """Of a generic on buffers: its padded axes.

    sizes: what their extents become.  words: what operands are filled up with.  most:
    what each axis's extent is at most, None where nobody knows.  lanes: results are
    copied in such vectors.
    """

    sizes: Mapping[int, int]
    words: Mapping[int, str]
    most: Sequence[int | None]
    lanes: Lanes

    @classmethod
    def of(cls, op: Op) -> Padding | None:
        """None where no axis is padded; Error where an extent is not known."""
        noted_ = noted(op, PADDED)
        if not noted_:
            return None
        axes, most = noted_[::4], most_extents(op)
        lanes = Lanes(noted_[-2], bool(noted_[-1]))
        words = [x.value for x in op.operation.attributes[WITH]]  # type: ignore[attr-defined]
        sizes: dict[int, int] = {}
        for axis, to in zip(axes, noted_[1::4], strict=True):
            extent = most[axis]
            if extent is None:
                raise Error(f"axis {axis} is padded, and nobody knows how large it is")
            sizes[axis] = -(-extent // to) * to
        return cls(sizes, dict(zip(axes, words, strict=True)), most, lanes)

    def shape(self, indexing: ir.AffineMap) -> dict[int, int]:
        """The extents of an operand's dimensions that change, by their places."""
        found: dict[int, int] = {}
        for place, expr in enumerate(indexing.results):
            if not dims_of(expr) & set(self.sizes):
                continue
            reach = 1
            for dim in dims_of(expr):
                extent, factor = (
                    self.sizes.get(dim, self.most[dim]),
                    coefficient(expr, dim),
                )
                if extent is None or factor is None or factor < 1:
                    raise Error("an operand is read at places that no pad reaches")
                reach += factor * (extent - 1)
            found[place] = reach + offset_of(expr)
        return found

    def word(self, expr: ir.AffineExpr, kinds: Sequence[str]) -> str:
        """What is behind the end of a dimension: a sum's number, if it is one's."""
        axes = sorted(dims_of(expr) & set(self.sizes), key=lambda d: kinds[d])
        return self.words[axes[-1]]


def most_extents(op: Op) -> list[int | None]:
    """What the extent of each axis of a generic on buffers is at most."""
    found: list[int | None] = [None] * len(iterators(op))
    for buffer, indexing in zip(op.operation.operands, maps(op), strict=True):
        for place, dim in enumerate(map_dims(indexing)):
            if dim is not None and found[dim] is None:
                found[dim] = most_size(buffer, place)
    return found


def most_size(buffer: ir.Value, place: int) -> int | None:
    kind = ir.MemRefType(buffer.type)
    if not kind.is_dynamic_dim(place):
        return kind.shape[place]
    return most_number(size_of(buffer, place))


def require_copies(op: Op, copied: Sequence[int], padding: Padding) -> None:
    """Error unless all that padded points read is copied."""
    for number in range(input_count(op)):
        if all_dims(maps(op)[number]) & set(padding.sizes) and number not in copied:
            raise Error(
                f"operand {number} is not copied: padded points are behind its end"
            )


def padded_copy(
    op: Op, operand: int, part: ir.Value, padding: Padding, lanes: Lanes
) -> ir.Value:
    """A copy of an operand's part with room for all points, filled up."""
    indexing = maps(op)[operand]
    shape, kinds = padding.shape(indexing), iterators(op)
    made = room(part, shape)
    for place in shape:
        word = padding.word(indexing.results[place], kinds)
        fill(beyond(made, part, place), word, lanes)
    copy_rows(part, inside(made, part), lanes)
    return made


def pad_results(op: ir.OpView, padding: Padding) -> None:
    """Let results with a padded axis be computed in larger buffers, and come back."""
    count = input_count(op)
    for operand in range(count, len(list(op.operation.operands))):
        part, shape = op.operation.operands[operand], padding.shape(maps(op)[operand])
        if not shape:
            continue
        first = fill_of(op, operand - count)
        with ir.InsertionPoint(first or op), op.operation.location:
            made = room(part, shape)
            if first is not None:
                first.operation.operands[0] = made
        argument = body(op).arguments[operand]
        with ir.InsertionPoint(op), op.operation.location:
            if first is None and list(argument.uses):
                for place in shape:
                    fill(beyond(made, part, place), "zero", padding.lanes)
                copy_rows(part, inside(made, part), padding.lanes)
        op.operation.operands[operand] = made
        with ir.InsertionPoint.after(op.operation), op.operation.location:
            copy_rows(inside(made, part), part, padding.lanes)


# ---- buffers ---------------------------------------------------------------------


def room(
    part: ir.Value, shape: Mapping[int, int], element: ir.Type | None = None
) -> ir.Value:
    """A buffer like another one, with other extents of some dimensions; element: of
    another type."""
    kind = ir.MemRefType(part.type)
    extents = [shape.get(place, extent) for place, extent in enumerate(kind.shape)]
    sizes = [
        size_of(part, place)
        for place in range(kind.rank)
        if place not in shape and kind.is_dynamic_dim(place)
    ]
    made = ir.MemRefType.get(extents, element or kind.element_type)
    return memref.alloc(made, sizes, [])


def inside(made: ir.Value, part: ir.Value) -> ir.Value:
    """What a larger buffer has of a part."""
    rank = ir.MemRefType(part.type).rank
    return subview(made, [0] * rank, [extent(part, place) for place in range(rank)])


def beyond(made: ir.Value, part: ir.Value, place: int) -> ir.Value:
    """What a larger buffer has behind a part, along one dimension."""
    whole = ir.MemRefType(made.type)
    begins: list[int | ir.Value] = [0] * whole.rank
    sizes = [extent(made, each) for each in range(whole.rank)]
    begin = extent(part, place)
    begins[place] = begin
    if isinstance(begin, int):
        sizes[place] = whole.shape[place] - begin
    else:
        sizes[place] = arith.subi(index(whole.shape[place]), begin)
    return subview(made, begins, sizes)


def fill(part: ir.Value, word: str, lanes: Lanes) -> None:
    """Write a number everywhere in a buffer; nothing for one without elements."""
    kind = ir.MemRefType(part.type)
    if 0 not in kind.shape:
        element = kind.element_type
        fill_rows(part, lambda: number_of(word, element), lanes)


def extent(buffer: ir.Value, place: int) -> int | ir.Value:
    """A number where it is one."""
    kind = ir.MemRefType(buffer.type)
    if kind.is_dynamic_dim(place):
        return size_of(buffer, place)
    return kind.shape[place]


def size_of(buffer: ir.Value, place: int) -> ir.Value:
    """An extent that is known only as it runs; of a part, as the part was taken."""
    owner = made_by(buffer, "memref.alloc", "memref.subview")
    return size(buffer, place) if owner is None else dynamic_size(owner, place)
