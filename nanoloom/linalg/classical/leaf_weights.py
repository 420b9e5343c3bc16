"""The weights of the leaves that rows reach in trees, aggregated.

All rows of x walk down all trees together (walk.py), or they are compared with all
nodes, where that takes less (leaf_bits.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

import numpy as np

from nanoloom.graph.shared_decisions import SMALL_BATCH
from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder
from nanoloom.linalg.builder.indexing import INT64, dims, position
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import BOOL, Scalar, constant, select
from nanoloom.linalg.builder.tensor import Array, Tensor
from nanoloom.linalg.classical.forest import LEAF, MEMBER, MODES, Forest
from nanoloom.linalg.classical.leaf_bits import LANES, LeafBits, leaf_bits
from nanoloom.linalg.classical.walk import INT32, Decide, in_pairs, leaves, steps_down
from nanoloom.linalg.reductions.reduce import highest, lowest

INT8 = np.dtype(np.int8)
Decision = Callable[[Scalar, Scalar], Scalar]
COMBINED: dict[str, Decision] = {
    "AVERAGE": lambda sofar, weight: sofar + weight,
    "SUM": lambda sofar, weight: sofar + weight,
    "MIN": lambda sofar, weight: sofar.minimum(weight),
    "MAX": lambda sofar, weight: sofar.maximum(weight),
}


COMPARISONS: tuple[Callable[[Scalar, Scalar], Scalar], ...] = (
    lambda value, limit: value <= limit,
    lambda value, limit: value < limit,
    lambda value, limit: value >= limit,
    lambda value, limit: value > limit,
    lambda value, limit: value.equal(limit),
    lambda value, limit: value.differs(limit) & ~value.is_nan(),
)


def decision(b: Builder, forest: Forest, dtype: np.dtype) -> Decide:
    """Inside a body: whether the node at a place takes its true branch for a value.

    Its threshold is looked up where None is given.
    """
    modes = sorted(set(forest.modes.tolist()) - {LEAF}) or [0]
    thresholds = b.value(b.constant(forest.thresholds, dtype))
    kinds = b.value(b.constant(forest.modes, INT8))
    missing = b.value(b.constant(forest.missing)) if forest.missing.any() else None
    is_member = membership(b, forest, dtype) if MEMBER in modes else None

    def decide(at: Scalar, value: Scalar, limit: Scalar | None) -> Scalar:
        limit = b.load(thresholds, dtype, [at]) if limit is None else limit
        kind = b.load(kinds, INT8, [at]) if len(modes) > 1 else None
        taken = None
        for mode in modes:
            if mode == MEMBER and is_member is not None:
                one = is_member(at, value)
            else:
                one = COMPARISONS[mode](value, limit)
            if taken is None or kind is None:
                taken = one
            else:
                taken = select(kind.equal(mode), one, taken)
        assert taken is not None
        if missing is None:
            return taken
        return taken | (value.is_nan() & b.load(missing, BOOL, [at]))

    return decide


def membership(b: Builder, forest: Forest, dtype: np.dtype) -> Decision:
    """Inside a body: whether a value is in the set of the node at a place."""
    table, count = b.value(b.constant(forest.members, dtype)), forest.members.shape[1]

    def found(at: Scalar, value: Scalar) -> Scalar:
        places = [constant(k, INT64) for k in range(count)]
        same = [value.equal(b.load(table, dtype, [at, k])) for k in places]
        return reduce(lambda one, other: one | other, same, constant(0, BOOL))

    return found


def tested_once(b: Builder, x: Tensor, forest: Forest) -> tuple[Tensor, Forest]:
    """The same without tests for NaN: nodes that take it read columns in which it is
    the least number.

    A comparison by "less" holds for that, whatever the threshold, but for the same.
    """
    known = np.isin(forest.modes, [MODES["BRANCH_LEQ"], MODES["BRANCH_LT"], LEAF])
    if not forest.missing.any() or not (known & (forest.thresholds > -np.inf)).all():
        return x, forest

    def least(value: Scalar) -> Scalar:
        return select(value.is_nan(), constant(-np.inf, value.dtype), value)

    wide = b.concat([x, b.elementwise(least, x)], 1)
    features = forest.features + forest.missing * x.shape[1]
    none = np.zeros_like(forest.missing)
    return wide, replace(forest, features=features, missing=none)


def aggregated(b: Builder, node: Node, x: Tensor, forest: Forest, how: str) -> Tensor:
    """Sum, average, smallest or largest weight of the leaves, [rows, targets]."""
    dtype = x.dtype
    if forest.depth() is None:
        raise node.unsupported("its trees have circles", "the model is damaged")
    x, forest = tested_once(b, x, forest)
    first = neutral(how, dtype)
    table = np.where(forest.given, forest.weights, first)
    start = b.full((x.shape[0], table.shape[1]), first, dtype)
    rows = 1 if node.int(SMALL_BATCH) else x.shape[0]
    words = leaf_bits(forest, int(steps_down(forest).sum()), rows)
    if words is not None:
        made = from_bits(b, x, words, table, (how, start))
    else:
        walked = in_pairs(forest)
        table = np.where(walked.given, walked.weights, first)
        decide = decision(b, walked, dtype)
        reached = leaves(b, x, walked, decide, rows < LANES)
        source = b.value(b.constant(table, dtype))

        def body(at: Scalar, sofar: Scalar) -> Scalar:
            return COMBINED[how](sofar, b.load(source, dtype, [at, position(1)]))

        made = b.generic(
            [(reached, dims(3, [0, 2]))], [(start, dims(3, [0, 1]))],
            [PARALLEL, PARALLEL, REDUCTION], body,
        )[0]  # fmt: skip
    if how != "AVERAGE":
        return made
    return b.elementwise(lambda s: s / len(forest.roots), made)


def neutral(how: str, dtype: np.dtype) -> float:
    """What changes no aggregate."""
    return {"MIN": highest(dtype), "MAX": lowest(dtype)}.get(how, 0)


def from_bits(
    b: Builder, x: Tensor, words: LeafBits, table: Array, begun: tuple[str, Tensor]
) -> Tensor:
    """The same of the bit that each word keeps.

    table: [rows of the forest, targets].  begun: the aggregate, what it begins with.
    """
    how, start = begun
    kept, count = kept_bits(b, x, words), len(words.leaves) // words.groups
    none = np.full_like(table[:1], neutral(how, x.dtype))
    found = np.concatenate([table, none])[words.leaves]  # -1: the last one
    if words.groups > 1:
        own = np.arange(len(words.leaves)) // count
        found = found[np.arange(len(own)), :, own][..., None]
    shape = (words.groups, count, x.shape[0])
    source = b.value(b.constant(found.reshape(-1, found.shape[-1]), x.dtype))

    def body(word: Scalar, sofar: Scalar) -> Scalar:
        group = position(1) if words.groups > 1 else constant(0, INT64)
        target = constant(0, INT64) if words.groups > 1 else position(1)
        place = (group * count + position(2)) * found.shape[1]
        at = place + word.math("cttz").cast(INT64)
        return COMBINED[how](sofar, b.load(source, x.dtype, [at, target]))

    group = [1] if words.groups > 1 else []
    kept = b.reshape(kept, shape if words.groups > 1 else shape[1:])
    return b.generic(
        [(kept, dims(3, [*group, 2, 0]))], [(start, dims(3, [0, 1]))],
        [PARALLEL, PARALLEL, REDUCTION], body,
    )[0]  # fmt: skip


def kept_bits(b: Builder, x: Tensor, words: LeafBits) -> Tensor:
    """Of each word the bits that all of its nodes keep, int32 [words, rows]."""
    columns = b.value(b.transpose(x, [1, 0]))
    features = b.value(b.constant(words.forest.features.astype(np.int64)))
    decide = decision(b, words.forest, x.dtype)
    masks = [words.refused] if words.taken is None else [words.refused, words.taken]
    tables = [b.constant(m.reshape(-1, words.nodes).T.copy()) for m in masks]

    def body(refused: Scalar, *others: Scalar) -> Scalar:
        *taken, sofar = others
        at = position(0) * words.nodes + position(2)
        value = b.load(columns, x.dtype, [b.load(features, INT64, [at]), position(1)])
        yes = taken[0] if taken else constant(-1, INT32)
        return sofar & select(decide(at, value, None), yes, refused)

    start = b.full((len(words.leaves), x.shape[0]), -1, INT32)
    return b.generic(
        [(table, dims(3, [2, 0])) for table in tables], [(start, dims(3, [0, 1]))],
        [PARALLEL, PARALLEL, REDUCTION], body,
    )[0]  # fmt: skip
