"""Probabilities of classes from those of pairs: Wu, Lin and Weng's second method.

The p that minimizes the sum over pairs of (r[j, i] p[i] - r[i, j] p[j])^2, by the
iteration that libsvm and runtimes of ONNX take, which ends before it has converged.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.indexing import position
from nanoloom.linalg.builder.loops import repeat, repeat_while
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.placed_operands import BroadcastOperand, combine
from nanoloom.linalg.builder.scalar import Scalar, constant, from_index, select
from nanoloom.linalg.builder.slices import element, index
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.elementwise.activations import sigmoid

FLOAT64 = np.dtype(np.float64)
TRIPS, ERROR = 100, 0.005  # the most, and what ends them, over the number of classes
LEAST = 1e-7  # of a pair's probability


def coupled(b: Builder, node: Node, scores: Tensor, count: int) -> Tensor:
    """[rows, classes] of the scores of pairs, with the node's prob_a and prob_b."""
    pairs = list(combinations(range(count), 2))
    given = [node.floats(name) for name in ("prob_a", "prob_b")]
    if any(len(numbers) != len(pairs) for numbers in given):
        raise node.invalid(f"its prob_a and prob_b are not {len(pairs)} numbers")
    slopes, offsets = (b.constant(np.array(numbers)) for numbers in given)

    def likely(score: Scalar, slope: Scalar, offset: Scalar) -> Scalar:
        made = sigmoid(-(score * slope + offset))
        return made.maximum(LEAST).minimum(1 - LEAST)

    wide = b.cast(scores, FLOAT64)
    first = b.elementwise(likely, wide, slopes, offsets)
    matrix = normal_matrix(b, first, count)
    rows = scores.shape[0]
    start = [
        b.full((rows, count), 1 / count, FLOAT64),
        b.full((rows,), 0, FLOAT64),
        b.full((1,), TRIPS, FLOAT64),
    ]

    def goes_on(now: list[Tensor]) -> Scalar:
        return element(b, now[2], [index(0)]) > 0.0

    return repeat_while(b, start, goes_on, lambda now: improved(b, matrix, now, count))[
        0
    ]


def normal_matrix(b: Builder, first: Tensor, count: int) -> Tensor:
    """Q[n, t, t] = sum of r[j, t]^2, Q[n, t, j] = -r[j, t] r[t, j]."""
    pairs = {pair: row for row, pair in enumerate(combinations(range(count), 2))}
    source, shape = b.value(first), (first.shape[0], count, count)
    places = np.zeros((count, count), np.int64)
    signs = np.zeros((count, count))  # r[i, j] = [i > j] +- first[pair]
    for (i, j), row in pairs.items():
        places[i, j] = places[j, i] = row
        signs[i, j], signs[j, i] = 1, -1
    above = np.tril(np.ones((count, count)), -1)
    tables = [BroadcastOperand(b.constant(t), (1, 2)) for t in (places, signs, above)]

    def body(place: Scalar, sign: Scalar, base: Scalar) -> Scalar:
        return base + sign * b.load(source, FLOAT64, [position(0), place])

    r = combine(b, body, shape, FLOAT64, *tables)
    diagonal = b.einsum("njt,njt->nt", r, r)
    mixed = b.einsum("njt,ntj->ntj", r, r)

    def joined(square: Scalar, product: Scalar) -> Scalar:
        return select(position(1).equal(position(2)), square, -product)

    return combine(b, joined, shape, FLOAT64, BroadcastOperand(diagonal, (0, 1)), mixed)


def improved(b: Builder, matrix: Tensor, now: list[Tensor], count: int) -> list[Tensor]:
    """One trip over all classes, for the rows that are not done yet.

    now: probabilities [rows, classes]; 1 for rows that are done; trips that are left,
    [1], none where all are done.
    """
    before, done, trips = now
    slope = b.einsum("nij,nj->ni", matrix, before)
    level = b.einsum("ni,ni->n", before, slope)

    def distance(one: Scalar, other: Scalar) -> Scalar:
        return (one - other).absolute()

    far = combine(
        b, distance, before.shape, FLOAT64, slope, BroadcastOperand(level, (0,))
    )
    error = b.reduce(lambda s, v: s.maximum(v), far, [1], 0, keepdims=False)

    def ends(sofar: Scalar, error: Scalar) -> Scalar:
        small = error < ERROR / count
        return select(small, constant(1, FLOAT64), sofar)

    finished = b.elementwise(ends, done, error)
    now = [before, slope, level]
    made = repeat(b, count, now, lambda i, x: moved(b, matrix, x, from_index(i)))[0]

    def chosen(old: Scalar, new: Scalar, flag: Scalar) -> Scalar:
        return select(flag > 0.0, old, new)

    kept = combine(
        b, chosen, before.shape, FLOAT64, before, made, BroadcastOperand(finished, (0,))
    )
    least = b.reduce(lambda s, v: s.minimum(v), finished, [0], 1, keepdims=True)
    left = b.elementwise(lambda t, all_done: (t - 1.0) * (1.0 - all_done), trips, least)
    return [kept, finished, left]


def moved(b: Builder, matrix: Tensor, now: list[Tensor], at: Scalar) -> list[Tensor]:
    """p, Q p and p Q p after the step along one class, scaled to a sum of one."""
    p, slope, level = now
    steep, slopes = b.value(matrix), b.value(slope)

    def step(row: Scalar, level: Scalar) -> Scalar:
        square = b.load(steep, FLOAT64, [row, at, at])
        return (level - b.load(slopes, FLOAT64, [row, at])) / square

    rows = (p.shape[0],)
    size = combine(b, lambda s: step(position(0), s), rows, FLOAT64, level)

    def next_p(old: Scalar, d: Scalar) -> Scalar:
        here = position(1).equal(at)
        return (old + select(here, d, constant(0, FLOAT64))) / (d + 1.0)

    def next_slope(old: Scalar, d: Scalar) -> Scalar:
        along = b.load(steep, FLOAT64, [position(0), at, position(1)])
        return (old + d * along) / (d + 1.0)

    def next_level(old: Scalar, d: Scalar) -> Scalar:
        square = b.load(steep, FLOAT64, [position(0), at, at])
        found = b.load(slopes, FLOAT64, [position(0), at])
        return (old + d * (d * square + found * 2.0)) / ((d + 1.0) * (d + 1.0))

    return [
        combine(b, next_p, p.shape, FLOAT64, p, BroadcastOperand(size, (0,))),
        combine(b, next_slope, p.shape, FLOAT64, slope, BroadcastOperand(size, (0,))),
        combine(b, next_level, rows, FLOAT64, level, size),
    ]
