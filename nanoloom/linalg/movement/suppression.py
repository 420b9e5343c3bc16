"""NonMaxSuppression: the best box, without those that it covers, and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder, Map
from nanoloom.linalg.builder.indexing import INT64, dims, position
from nanoloom.linalg.builder.loops import repeat, repeat_while
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import BOOL, Scalar, constant, from_index, select
from nanoloom.linalg.builder.slices import element, index, read, with_element, written
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.mlir import arith, ir

NONE = -1  # the place of no box
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

    return repeat(b, batches * classes, start, of_class)


def of_row(
    b: Builder,
    edges: list[Tensor],
    score: Tensor,
    limits: Limits,
    row: Sequence[Scalar],
    now: list[Tensor],
) -> list[Tensor]:
    """The boxes of one class of one batch, written behind those there are."""
    alive = candidates(b, score, limits)
    states = [alive, best_of(b, score, alive), b.full([1], 0, INT64), *now]

    def goes_on(state: list[Tensor]) -> Scalar:
        _, place, taken, *_ = state
        more = element(b, taken, [index(0)]) < element(b, limits.most, [index(0)])
        return more & (element(b, place, []) >= 0)

    def step(state: list[Tensor]) -> list[Tensor]:
        alive, place, taken, out, total = state
        chosen, last = element(b, place, []), element(b, total, [index(0)])
        at = last.index()
        for column, value in enumerate((*row, chosen)):
            out = with_element(b, out, [at, index(column)], value)
        left = uncovered(b, edges, alive, chosen, limits.overlap)
        more = element(b, taken, [index(0)]) + 1
        return [
            left,
            best_of(b, score, left),
            with_element(b, taken, [index(0)], more),
            out,
            with_element(b, total, [index(0)], last + 1),
        ]

    return repeat_while(b, states, goes_on, step)[3:]


def candidates(b: Builder, score: Tensor, limits: Limits) -> Tensor:
    """Which boxes count and have a score above the least one."""
    scalar, along = Map.get(1, 0, []), dims(1, [0])

    def body(mine: Scalar, least: Scalar, end: Scalar, _: Scalar) -> Scalar:
        above = (mine > least) | constant(limits.everything, BOOL)
        return (position(0) < end) & above

    return b.generic(
        [(score, along), (limits.least, scalar), (limits.size, scalar)],
        [(Tensor(score.shape, BOOL, b.empty(score.shape, BOOL)), along)],
        [PARALLEL],
        body,
    )[0]


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


def best_of(b: Builder, score: Tensor, alive: Tensor) -> Tensor:
    """The place of the best score among those alive, the first of equal ones: int64."""

    def body(mine: Scalar, is_alive: Scalar, best: Scalar, found: Scalar):
        better = found.equal(NONE) | (mine > best)
        taken = is_alive & better
        return [select(taken, mine, best), select(taken, position(0), found)]

    along, scalar = dims(1, [0]), Map.get(1, 0, [])
    return b.generic(
        [(score, along), (alive, along)],
        [(b.full([], 0, FLOAT32), scalar), (b.full([], NONE, INT64), scalar)],
        [REDUCTION],
        body,
    )[1]


def uncovered(
    b: Builder, edges: list[Tensor], alive: Tensor, chosen: Scalar, overlap: Tensor
) -> Tensor:
    """Which boxes are left beside a chosen one: not it, and none that it covers."""
    along, scalar = dims(1, [0]), Map.get(1, 0, [])
    box = [element(b, edge, [chosen.index()]) for edge in edges]

    def body(
        low: Scalar,
        high: Scalar,
        left: Scalar,
        right: Scalar,
        limit: Scalar,
        is_alive: Scalar,
        _: Scalar,
    ) -> Scalar:
        height = high.minimum(box[1]) - low.maximum(box[0])
        width = right.minimum(box[3]) - left.maximum(box[2])
        shared = height * width
        mine = (high - low) * (right - left)
        other = (box[1] - box[0]) * (box[3] - box[2])
        whole = other + mine - shared
        is_there = (height > 0.0) & (width > 0.0) & (shared > 0.0)
        is_there = is_there & (mine > 0.0) & (other > 0.0) & (whole > 0.0)
        covered = is_there & (shared / whole > limit)
        return is_alive & ~(covered | position(0).equal(chosen))

    given = [*[(edge, along) for edge in edges], (overlap, scalar), (alive, along)]
    left = Tensor(alive.shape, BOOL, b.empty(alive.shape, BOOL))
    return b.generic(given, [(left, along)], [PARALLEL], body)[0]
