"""NonMaxSuppression: boxes by their scores, without those that one before covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nanoloom.ir.mlir import arith, ir
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.indexing import INT64
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.numbered_loops import State, repeat, repeat_while, when
from nanoloom.linalg.builder.pairs import PLACE, part_of, room, with_pair
from nanoloom.linalg.builder.scalar import BOOL, Scalar, constant, from_index, select
from nanoloom.linalg.builder.slices import element, index, read, with_element, written
from nanoloom.linalg.builder.sort import each_row, in_order
from nanoloom.linalg.builder.sort_key import UINT32, key
from nanoloom.linalg.builder.tensor import Tensor

FLOAT32 = np.dtype(np.float32)


@dataclass(frozen=True)
class Limits:
    """What suppresses a box: most boxes int64 [1], the overlap and the least score.

    everything: whether there is no least score, which is a scalar as the overlap is.
    size: boxes that count, a scalar.
    """

    most: Tensor
    overlap: Tensor
    least: Tensor
    everything: bool
    size: Tensor

    @classmethod
    def of(cls, b: Builder, node: Node) -> Limits:
        return cls(
            written(b, b.reshape(b.cast(node.input(3), INT64), (1,))),
            number(b, node.optional(4), 0.0),
            number(b, node.optional(5), -np.inf),
            node.optional(5) is None,
            b.reshape(written(b, node.input(2)), ()),
        )


def suppressed(b: Builder, node: Node) -> list[Tensor]:
    """[batch, class, box] of what is left, and how many rows: [most, 3] and [1].

    Inputs: boxes [n, k, 4], scores [n, c, k], int64 [1] boxes that count, and ONNX's
    three limits.
    """
    boxes, scores = node.input(0), node.input(1)
    shape = node.output_shapes[0]
    start = [b.full(shape, 0, INT64), b.full([1], 0, INT64)]
    if 0 in shape:
        return start
    limits = Limits.of(b, node)
    edges = edges_of(b, boxes, bool(node.int("center_point_box")))
    batches, classes, count = scores.shape
    rows = b.reshape(scores, (batches * classes, count))

    def of_class(i: ir.Value, now: list[Tensor]) -> list[Tensor]:
        batch = arith.divsi(i, index(classes))
        mine = [read(b, edge, [batch, 0], [1, count], [0]) for edge in edges]
        score = read(b, rows, [i, 0], [1, count], [0])
        place = from_index(batch), from_index(arith.remsi(i, index(classes)))
        return of_row(b, mine, score, limits, place, now)

    return each_row(b, batches * classes, start, of_class)


def of_row(
    b: Builder,
    edges: list[Tensor],
    score: Tensor,
    limits: Limits,
    row: Sequence[Scalar],
    now: list[Tensor],
) -> list[Tensor]:
    """The boxes of one class of one batch, written behind those there are."""
    pairs, size = candidates(b, score, limits)
    most, limit = element(b, limits.most, [index(0)]), element(b, limits.overlap, [])
    total, zero = element(b, now[1], [index(0)]), constant(0, INT64)
    kept = Tensor((*score.shape, 4), FLOAT32, b.empty((*score.shape, 4), FLOAT32))

    def goes_on(_: list[Tensor], numbers: list[Scalar]) -> Scalar:
        seen, taken = numbers
        return (seen < size) & (taken < most)

    def step(found: list[Tensor], numbers: list[Scalar]) -> State:
        seen, taken = numbers
        place = part_of(b, pairs, seen.index(), PLACE).cast(INT64)
        box = [element(b, edge, [place.index()]) for edge in edges]
        alone = ~is_covered(b, box, found[0], taken, limit)

        def keep(found: list[Tensor], numbers: list[Scalar]) -> State:
            kept, out = found
            for i, edge in enumerate(box):
                kept = with_element(b, kept, [numbers[0].index(), index(i)], edge)
            at = (total + numbers[0]).index()
            for i, value in enumerate((*row, place)):
                out = with_element(b, out, [at, index(i)], value)
            return [kept, out], [numbers[0] + 1]

        found, (taken,) = when(b, alone, (found, [taken]), keep)
        return found, [seen + 1, taken]

    begun = [kept, now[0]], [zero, zero]
    (_, out), (_, taken) = repeat_while(b, begun, goes_on, step)
    return [out, with_element(b, now[1], [index(0)], total + taken)]


def candidates(b: Builder, score: Tensor, limits: Limits) -> tuple[Tensor, Scalar]:
    """Pairs of boxes that have a score above the least one, the best first, and how
    many there are; NaN is the least score.
    """
    (count,) = score.shape
    least, everything = element(b, limits.least, []), constant(limits.everything, BOOL)
    size = element(b, limits.size, []).minimum(count).maximum(0)

    def collect(i: ir.Value, pairs: list[Tensor], filled: list[Scalar]) -> State:
        mine = element(b, score, [i])

        def put(pairs: list[Tensor], filled: list[Scalar]) -> State:
            number = select(mine.is_nan(), constant(-np.inf, FLOAT32), mine)
            at, place = filled[0].index(), from_index(i).cast(UINT32)
            made = with_pair(b, pairs[0], at, key(number, True, UINT32), place)
            return [made], [filled[0] + 1]

        return when(b, (mine > least) | everything, (pairs, filled), put)

    start = [room(b, 2, count, UINT32)], [constant(0, INT64)]
    (pairs,), (filled,) = repeat(b, size.index(), start, collect)
    return in_order(b, pairs, filled), filled


def is_covered(
    b: Builder, box: list[Scalar], kept: Tensor, count: Scalar, limit: Scalar
) -> Scalar:
    """Whether one of the first `count` boxes kept covers a box."""
    low, high, left, right = box
    mine = (high - low) * (right - left)

    def goes_on(_: list[Tensor], numbers: list[Scalar]) -> Scalar:
        seen, covered = numbers
        return (seen < count) & ~covered

    def step(_: list[Tensor], numbers: list[Scalar]) -> State:
        at = numbers[0].index()
        other = [element(b, kept, [at, index(i)]) for i in range(4)]
        height = smaller(high, other[1]) - larger(low, other[0])
        width = smaller(right, other[3]) - larger(left, other[2])

        def compare(_: list[Tensor], numbers: list[Scalar]) -> State:
            shared = height * width
            area = (other[1] - other[0]) * (other[3] - other[2])
            whole = area + mine - shared
            is_there = (shared > 0.0) & (mine > 0.0) & (area > 0.0) & (whole > 0.0)
            return [], [is_there & (shared / whole > limit)]

        meet = (height > 0.0) & (width > 0.0)
        _, (covered,) = when(b, meet, ([], [constant(False, BOOL)]), compare)
        return [], [numbers[0] + 1, covered]

    start = [constant(0, INT64), constant(False, BOOL)]
    return repeat_while(b, ([], start), goes_on, step)[1][1]


def smaller(x: Scalar, y: Scalar) -> Scalar:
    """One instruction, which may lose NaN: a box with one has no area here."""
    return select(x < y, x, y)


def larger(x: Scalar, y: Scalar) -> Scalar:
    return select(x > y, x, y)


def number(b: Builder, given: Tensor | None, default: float) -> Tensor:
    """A limit as a scalar."""
    if given is None:
        return b.full([], default, FLOAT32)
    return b.reshape(given, ())


def edges_of(b: Builder, boxes: Tensor, by_center: bool) -> list[Tensor]:
    """Least and largest y and x of all boxes, each [n, k]."""
    n, k, _ = boxes.shape
    one, two, three, four = (
        b.reshape(b.slice(boxes, [0, 0, i], [n, k, 1]), (n, k)) for i in range(4)
    )
    if by_center:  # x, y, width, height
        pairs = ((two, four), (one, three))
        ends = (lambda c, w: c - w / 2.0, lambda c, w: c + w / 2.0)
        return [b.elementwise(end, *pair) for pair in pairs for end in ends]
    pairs = ((one, three), (two, four))
    return [
        b.elementwise(end, *pair)
        for pair in pairs
        for end in (lambda x, y: x.minimum(y), lambda x, y: x.maximum(y))
    ]
