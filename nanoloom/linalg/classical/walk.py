"""Which leaf a row reaches, by walking down a tree: a step moves every row, those at a
leaf to itself.  No step of a row waits for one of another row.

A step reads little: branches of a node stand next to each other, and a word says where
they are and which feature is compared.

    word     feature | place of the first branch | 1, or 0 for a leaf
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.indexing import INT64, dims, map_generic, position
from nanoloom.linalg.builder.loops import repeat
from nanoloom.linalg.builder.scalar import Scalar, constant, select
from nanoloom.linalg.builder.slices import element, read_at, write_at
from nanoloom.linalg.builder.tensor import Array, Tensor
from nanoloom.linalg.classical.forest import LEAF, Forest

INT32, FLOAT32 = np.dtype(np.int32), np.dtype(np.float32)
# Whether the node at a place takes its true branch for a value, by its threshold.
Decide = Callable[[Scalar, Scalar, Scalar | None], Scalar]


def in_pairs(forest: Forest) -> Forest:
    """The same trees: a place for each branch, the false one behind the true one, and
    for each root."""
    inner = np.flatnonzero(forest.modes != LEAF)
    branches = np.stack([forest.yes[inner], forest.no[inner]], axis=1).reshape(-1)
    rows = np.concatenate([branches, forest.roots])
    pair = np.zeros(len(forest.modes), np.int64)
    pair[inner] = 2 * np.arange(len(inner))
    is_leaf = forest.modes[rows] == LEAF
    yes = np.where(is_leaf, np.arange(len(rows)), pair[rows])
    return Forest(
        forest.features[rows], forest.thresholds[rows], forest.modes[rows],
        yes, np.where(is_leaf, yes, yes + 1), forest.missing[rows],
        np.arange(len(branches), len(rows)), forest.members[rows],
        forest.weights[rows], forest.given[rows],
    )  # fmt: skip


def words(forest: Forest) -> tuple[Array, int | None]:
    """Of trees in pairs, [rows, 1 or 2], and the bits of a place.

    Where features are too many for a word, None: they are the second of two.
    """
    places = 2 * forest.yes + (forest.modes != LEAF)
    width = int(2 * len(places) - 1).bit_length()
    if int(forest.features.max(initial=0)) < 1 << (31 - width):
        return (forest.features << width | places)[:, None], width
    return np.stack([places, forest.features], axis=1), None


def steps_down(forest: Forest) -> Array:
    """Steps from each root to the deepest leaf below it."""
    steps = np.zeros(len(forest.roots), np.int64)
    owner, at = np.arange(len(forest.roots)), forest.roots
    while at.size:
        inner = forest.modes[at] != LEAF
        owner, at = owner[inner], at[inner]
        steps[owner] += 1
        pairs = np.stack([np.tile(owner, 2), np.r_[forest.yes[at], forest.no[at]]])
        owner, at = np.unique(pairs, axis=1)
    return steps


def leaves(b: Builder, x: Tensor, forest: Forest, decide: Decide, few: bool) -> Tensor:
    """The row of the leaf that each row of x reaches in each tree, [rows, trees].

    forest: in pairs.  few: few rows walk down all trees together; many walk down one
    tree after the other, which then lies near.
    """
    rows, trees, steps = x.shape[0], len(forest.roots), steps_down(forest)
    move = mover(b, x, forest, decide)
    roots = b.constant(forest.roots, INT32)
    if few:

        def step(_: object, carried: list[Tensor]) -> list[Tensor]:
            given = [(carried[0], dims(2, [0, 1]))]
            return [map_generic(b, (rows, trees), INT32, given, move)]

        start = b.broadcast_to(roots, (rows, trees))
        return repeat(b, int(steps.max(initial=0)), [start], step)[0]
    counts = b.constant(steps, INT64)

    def down(_: object, carried: list[Tensor]) -> list[Tensor]:
        return [map_generic(b, (rows,), INT32, [(carried[0], dims(1, [0]))], move)]

    def tree(i: ir.Value, carried: list[Tensor]) -> list[Tensor]:
        start = b.broadcast_to(read_at(b, roots, 0, i), (rows,))
        made = repeat(b, element(b, counts, [i]).index(), [start], down)[0]
        return [write_at(b, made, carried[0], 0, i)]

    start = Tensor((trees, rows), INT32, b.empty((trees, rows), INT32))
    return b.transpose(repeat(b, trees, [start], tree)[0], [1, 0])


def mover(
    b: Builder, x: Tensor, forest: Forest, decide: Decide
) -> Callable[[Scalar], Scalar]:
    """Inside a body whose first position is a row of x: a place after a step."""
    table, width = words(forest)
    has_bits = x.dtype == FLOAT32
    if has_bits:
        bits = forest.thresholds.astype(FLOAT32).view(INT32)
        table = np.concatenate([table, bits[:, None]], axis=1)
    nodes, source = b.value(b.constant(table, INT32)), b.value(x)

    def part(at: Scalar, column: int) -> Scalar:
        return b.load(nodes, INT32, [at, constant(column, INT64)])

    def move(at: Scalar) -> Scalar:
        place = part(at, 0)
        if width is None:
            feature = part(at, 1)
        else:
            feature, place = place >> width, place & ((1 << width) - 1)
        value = b.load(source, x.dtype, [position(0), feature])
        limit = part(at, table.shape[1] - 1).bitcast(x.dtype) if has_bits else None
        taken = decide(at, value, limit)
        return (place >> 1) + select(taken, constant(0, INT32), place & 1)

    return move
