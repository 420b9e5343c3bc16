"""TopK: the best element, then the best one behind it, k times, all rows at once."""

from __future__ import annotations

from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder, Map
from nanoloom.linalg.builder.index_checks import check
from nanoloom.linalg.builder.indexing import INT64, dims, map_generic, position
from nanoloom.linalg.builder.loops import repeat
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, select
from nanoloom.linalg.builder.slices import (
    element,
    index,
    read,
    with_element,
    write_at,
    written,
)
from nanoloom.linalg.builder.sort import (
    PLACE,
    each_row,
    first_places,
    key,
    key_type,
)
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.mlir import ir

NONE = -1  # the index of no element
FEW = 64  # elements of an axis that are looked at again for each of the best


def top_k(b: Builder, node: Node) -> list[Tensor | None]:
    """Values and their indices along an axis; of equal ones the first comes first."""
    x = node.input(0)
    axis, largest = node.int("axis", -1) % x.rank, bool(node.int("largest", 1))
    count = node.int("k") if node.version < 10 else int(first(node, 1))
    if not 0 <= count <= x.shape[axis]:
        raise node.unsupported(f"k is {count}, the axis has {x.shape[axis]} elements")
    shape = tuple(count if d == axis else s for d, s in enumerate(x.shape))
    if x.shape[axis] >= FEW:
        indices = sorted_places(b, x, axis, largest, count)
        return [pick(b, x, indices, axis), indices]
    rows = tuple(s for d, s in enumerate(x.shape) if d != axis)
    start = [
        Tensor(shape, INT64, b.empty(shape, INT64)),
        b.full(rows, 0, key_type(x.dtype)),
        b.full(rows, NONE, INT64),
    ]

    def step(i: ir.Value, now: list[Tensor]) -> list[Tensor]:
        best, place = next_best(b, x, axis, largest, now[1], now[2])
        return [write_at(b, place, now[0], axis, i), best, place]

    indices = repeat(b, count, start, step)[0]
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
    rows = tuple(s for d, s in enumerate(x.shape) if d != axis)
    start = [
        b.full(shape, 0, INT64),
        b.full(rows, 0, key_type(x.dtype)),
        b.full(rows, NONE, INT64),
    ]

    def step(i: ir.Value, now: list[Tensor]) -> list[Tensor]:
        best, place = next_best(b, x, axis, largest, now[1], now[2], size)
        return [write_at(b, place, now[0], axis, i), best, place]

    if 0 in shape:
        return [b.full(shape, 0, x.dtype), b.full(shape, 0, INT64)]
    number = b.elementwise(
        lambda n, have: n.minimum(have).maximum(0).minimum(shape[axis]), k, size
    )
    trips = element(b, number, [index(0)]).index()
    indices = repeat(b, trips, start, step)[0]
    return [pick(b, x, indices, axis), indices]


def sorted_places(
    b: Builder,
    x: Tensor,
    axis: int,
    largest: bool,
    room: int,
    size: ir.Value | None = None,
    count: ir.Value | None = None,
) -> Tensor:
    """Where the best `count` of the first `size` elements are: int64, `room` an axis.

    Without numbers: the best `room` of all.
    """
    last = [d for d in range(x.rank) if d != axis] + [axis]
    whole = b.transpose(x, last)
    extent, rows = x.shape[axis], x.size // max(x.shape[axis], 1)
    flat = b.reshape(whole, (rows, extent))
    have = index(extent) if size is None else size
    wanted = index(room) if count is None else count
    is_all = count is None and room == extent

    def step(row: ir.Value, now: list[Tensor]) -> list[Tensor]:
        mine = read(b, flat, [row, 0], [1, extent], [0])
        keys = b.elementwise(lambda s: key(s, largest), mine, dtype=key_type(x.dtype))
        pairs = first_places(b, keys, have, None if is_all else wanted)

        def put(i: ir.Value, made: list[Tensor]) -> list[Tensor]:
            place = element(b, pairs, [i, index(PLACE)]).cast(INT64)
            return [with_element(b, made[0], [row, i], place)]

        return repeat(b, wanted, now, put)

    (made,) = each_row(b, rows, [b.full((rows, room), 0, INT64)], step)
    shape = [*[x.shape[d] for d in last[:-1]], room]
    back = [last.index(d) for d in range(x.rank)]
    return b.transpose(b.reshape(made, shape), back)


def first(node: Node, index: int) -> int:
    found = node.known(index)
    if found is None:
        raise node.unsupported(f"input {index} is missing")
    return int(found.reshape(-1)[0])


def next_best(
    b: Builder,
    x: Tensor,
    axis: int,
    largest: bool,
    last: Tensor,
    where: Tensor,
    size: Tensor | None = None,
) -> list[Tensor]:
    """Key and index of the best element behind (last, where), row by row.

    size: int64 [1], how many elements of the axis there are; all, if it is not given.
    """

    def body(
        element: Scalar,
        limit: Scalar,
        before: Scalar,
        *others: Scalar,
    ) -> list[Scalar]:
        *end, best, found = others
        mine, here = key(element, largest), position(axis)
        later = mine.equal(limit) & (here > before)
        behind = before.equal(NONE) | (mine > limit) | later
        sooner = mine.equal(best) & (here < found)
        better = found.equal(NONE) | (mine < best) | sooner
        taken = behind & better
        for number in end:
            taken = taken & (here < number)
        return [select(taken, mine, best), select(taken, here, found)]

    row = dims(x.rank, [d for d in range(x.rank) if d != axis])
    scalar = Map.get(x.rank, 0, [])
    given = [] if size is None else [(b.reshape(size, ()), scalar)]
    return b.generic(
        [(x, Map.get_identity(x.rank)), (last, row), (where, row), *given],
        [
            (b.full(last.shape, 0, last.dtype), row),
            (b.full(where.shape, NONE, INT64), row),
        ],
        [REDUCTION if d == axis else PARALLEL for d in range(x.rank)],
        body,
    )


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


OPERATORS = {"CountedTopK": counted_top_k, "TopK": top_k}
