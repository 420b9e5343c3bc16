"""TopK: keys of each row that order like its elements, sorted (builder/sort.py)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import Builder, Map
from nanoloom.linalg.builder.index_checks import check
from nanoloom.linalg.builder.indexing import INT64, map_generic, position
from nanoloom.linalg.builder.key_row import Row
from nanoloom.linalg.builder.loops import repeat
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.pairs import PLACE, part_of
from nanoloom.linalg.builder.scalar import Scalar
from nanoloom.linalg.builder.slices import element, index, with_element, written
from nanoloom.linalg.builder.sort import by_columns, each_row, first_pairs
from nanoloom.linalg.builder.sort_key import key, key_type
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.reductions.short_rows import are_short, first_places


def top_k(b: Builder, node: Node) -> list[Tensor | None]:
    """Values and their indices along an axis; of equal ones the first comes first."""
    x = node.input(0)
    axis, largest = node.int("axis", -1) % x.rank, bool(node.int("largest", 1))
    count = node.int("k") if node.version < 10 else int(first(node, 1))
    extent = x.shape[axis]
    if not 0 <= count <= extent:
        raise node.unsupported(f"k is {count}, the axis has {extent} elements")
    if are_short(b, x.dtype, extent, count):
        indices = first_places(b, x, axis, count, largest=largest)
    else:
        wanted = Wanted(axis, largest, count, extent, count)
        indices = sorted_places(b, x, wanted)
    return [pick(b, x, indices, axis), indices]


def counted_top_k(b: Builder, node: Node) -> list[Tensor | None]:
    """The best k of the first `size` elements; both numbers are known at run time.

    There is room for as many as the output has; index 0 stands behind the last.
    """
    x, k, size = node.input(0), node.input(1), node.input(2)
    axis, largest = node.int("axis") % x.rank, bool(node.int("largest"))
    shape = node.output_shapes[0]
    if size.is_constant:
        check(b, node, k, range(int(size.array().reshape(-1)[0]) + 1), "k")
    else:
        missing = b.elementwise(lambda n, have: (n - have).maximum(0), k, size)
        check(b, node, missing, range(1), "number of elements that k lacks,")
    k, size = written(b, k), written(b, size)
    room, extent = shape[axis], x.shape[axis]
    have = b.elementwise(lambda n: n.minimum(extent).maximum(0), size)
    number = b.elementwise(lambda n, m: n.minimum(m).maximum(0).minimum(room), k, have)
    if 0 in shape:
        return [b.full(shape, 0, x.dtype), b.full(shape, 0, INT64)]
    indices = sorted_places(b, x, Wanted(axis, largest, room, have, number))
    return [pick(b, x, indices, axis), indices]


@dataclass(frozen=True)
class Wanted:
    """The best elements of an axis: `count` of its first `size`, at most `room`.

    Numbers are INT64 [1], or known.
    """

    axis: int
    largest: bool
    room: int
    size: Tensor | int
    count: Tensor | int


def number(b: Builder, x: Tensor | int) -> Scalar:
    """A number that nothing is folded with: it may be a size, and another one then."""
    given = x if isinstance(x, Tensor) else b.full([1], x, INT64)
    return element(b, given, [index(0)])


def sorted_places(b: Builder, x: Tensor, wanted: Wanted) -> Tensor:
    """Where the best elements are: INT64, 0 behind the last of them."""
    last = [d for d in range(x.rank) if d != wanted.axis] + [wanted.axis]
    extent, shape = x.shape[wanted.axis], [x.shape[d] for d in last[:-1]]
    rows, back = prod(shape), [last.index(d) for d in range(x.rank)]
    made = b.full((rows, wanted.room), 0, INT64)
    if made.size:
        kind, largest = key_type(x.dtype), wanted.largest
        as_they_are = x.dtype.itemsize == kind.itemsize
        if not as_they_are:
            x = b.elementwise(lambda s: key(s, largest, kind), x, dtype=kind)
        x = b.reshape(b.transpose(x, last), (rows, extent))

        def step(i: ir.Value, now: list[Tensor]) -> list[Tensor]:
            row = Row(x, (i,), kind, largest if as_they_are else None)
            return of_row(b, row, wanted, now)

        (made,) = each_row(b, rows, [made], step)
    return b.transpose(b.reshape(made, (*shape, wanted.room)), back)


def of_row(b: Builder, row: Row, wanted: Wanted, now: list[Tensor]) -> list[Tensor]:
    """The places of one row [n] of [rows, n] written into those of all."""
    size, count = number(b, wanted.size), number(b, wanted.count)
    pairs = first_pairs(b, row, size, count, wanted.room)

    def put(i: ir.Value, made: list[Tensor]) -> list[Tensor]:
        place = part_of(b, pairs, i, PLACE).cast(INT64)
        return [with_element(b, made[0], [*row.where, i], place)]

    return repeat(b, count.index(), now, put)


def sorted_slices(b: Builder, node: Node) -> Tensor:
    """The order of the first `size` rows of x [n, m], by their first elements that
    differ: INT64 [n], 0 behind the last of them.

    By each column, the last one first; rows that are equal in it stay as they are.
    """
    x, size = node.input(0), written(b, node.input(1))
    extent, columns = x.shape
    kind, made = key_type(x.dtype), b.full([extent], 0, INT64)
    keys = b.elementwise(lambda s: key(s, False, kind), x, dtype=kind)

    def step(_: ir.Value, now: list[Tensor]) -> list[Tensor]:
        count = element(b, size, [index(0)]).minimum(extent).maximum(0)
        pairs = by_columns(b, keys, count)

        def put(i: ir.Value, made: list[Tensor]) -> list[Tensor]:
            place = part_of(b, pairs, i, PLACE).cast(INT64)
            return [with_element(b, made[0], [i], place)]

        return repeat(b, count.index(), now, put)

    return each_row(b, 1, [made], step)[0] if extent and columns else made


def first(node: Node, index: int) -> int:
    found = node.known(index)
    if found is None:
        raise node.unsupported(f"input {index} is missing")
    return int(found.reshape(-1)[0])


def pick(b: Builder, x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """The elements at these indices along an axis."""
    source = b.value(x)
    return map_generic(
        b,
        indices.shape,
        x.dtype,
        [(indices, Map.get_identity(x.rank))],
        lambda i: b.load(
            source, x.dtype, [i if d == axis else position(d) for d in range(x.rank)]
        ),
    )


OPERATORS = {
    "CountedTopK": counted_top_k,
    "SortedSlices": sorted_slices,
    "TopK": top_k,
}
