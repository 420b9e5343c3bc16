"""TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier of ai.onnx.ml.

All rows of x walk all trees together: one step of the loop moves [rows, trees] places.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder
from nanoloom.linalg.builder.indexing import INT64, dims, map_generic, position
from nanoloom.linalg.builder.loops import repeat
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import BOOL, Scalar, constant, select
from nanoloom.linalg.builder.tensor import Array, Tensor
from nanoloom.linalg.classical.forest import (
    LEAF,
    MEMBER,
    Forest,
    classic,
    modern,
    numbers,
)
from nanoloom.linalg.classical.linear_models import as_rows
from nanoloom.linalg.classical.scores import (
    FLOAT32,
    integer_labels,
    labels,
    shares,
    transformed,
    two_sided,
)
from nanoloom.linalg.reductions.reduce import highest, lowest

FLOAT64, INT8 = np.dtype(np.float64), np.dtype(np.int8)
Decision = Callable[[Scalar, Scalar], Scalar]
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def working_type(node: Node) -> np.dtype:
    """Thresholds and weights are f64 where the model keeps them as such, else f32."""
    names = ("nodes_values_as_tensor", "nodes_splits")
    tables = [node.array(name) for name in names]
    doubles = any(t is not None and t.dtype == FLOAT64 for t in tables)
    return FLOAT64 if doubles else FLOAT32


def leaves(b: Builder, node: Node, x: Tensor, forest: Forest) -> Tensor:
    """The row of the leaf that each row of x reaches in each tree, [rows, trees]."""
    depth, shape = forest.depth(), (x.shape[0], len(forest.roots))
    if depth is None:
        raise node.unsupported("its trees have circles", "the model is damaged")
    start = b.broadcast_to(b.constant(forest.roots.astype(np.int64)), shape)
    features = b.value(b.constant(forest.features.astype(np.int64)))
    source = b.value(x)
    branches = [
        b.value(b.constant(t.astype(np.int64))) for t in (forest.yes, forest.no)
    ]
    decide = decision(b, forest, x.dtype)

    def step(_: object, carried: list[Tensor]) -> list[Tensor]:
        def body(at: Scalar) -> Scalar:
            feature = b.load(features, INT64, [at])
            value = b.load(source, x.dtype, [position(0), feature])
            taken = decide(at, value)
            yes, no = (b.load(t, INT64, [at]) for t in branches)
            return select(taken, yes, no)

        identity = dims(2, [0, 1])
        return [map_generic(b, shape, INT64, [(carried[0], identity)], body)]

    return repeat(b, depth, [start], step)[0]


COMPARISONS: tuple[Callable[[Scalar, Scalar], Scalar], ...] = (
    lambda value, limit: value <= limit,
    lambda value, limit: value < limit,
    lambda value, limit: value >= limit,
    lambda value, limit: value > limit,
    lambda value, limit: value.equal(limit),
    lambda value, limit: value.differs(limit) & ~value.is_nan(),
)


def decision(b: Builder, forest: Forest, dtype: np.dtype) -> Decision:
    """Inside a body: whether the node at a place takes its true branch for a value."""
    modes = sorted(set(forest.modes.tolist()) - {LEAF}) or [0]
    thresholds = b.value(b.constant(forest.thresholds, dtype))
    kinds = b.value(b.constant(forest.modes, INT8))
    missing = b.value(b.constant(forest.missing)) if forest.missing.any() else None
    is_member = membership(b, forest, dtype) if MEMBER in modes else None

    def decide(at: Scalar, value: Scalar) -> Scalar:
        limit = b.load(thresholds, dtype, [at])
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


def aggregated(
    b: Builder, forest: Forest, reached: Tensor, how: str, dtype: np.dtype
) -> Tensor:
    """Sum, average, smallest or largest weight of the leaves, [rows, targets]."""
    rows, trees = reached.shape
    targets = forest.weights.shape[1]
    first = {"MIN": highest(dtype), "MAX": lowest(dtype)}.get(how, 0)
    table = np.where(forest.given, forest.weights, first)
    source = b.value(b.constant(table, dtype))

    def body(at: Scalar, sofar: Scalar) -> Scalar:
        weight = b.load(source, dtype, [at, position(1)])
        match how:
            case "MIN":
                return sofar.minimum(weight)
            case "MAX":
                return sofar.maximum(weight)
            case _:
                return sofar + weight

    start = b.full((rows, targets), first, dtype)
    made = b.generic(
        [(reached, dims(3, [0, 2]))], [(start, dims(3, [0, 1]))],
        [PARALLEL, PARALLEL, REDUCTION], body,
    )[0]  # fmt: skip
    if how != "AVERAGE":
        return made
    return b.elementwise(lambda s: s / trees, made)


def with_base(b: Builder, x: Tensor, base: Array) -> Tensor:
    if not base.size:
        return x
    return b.elementwise(lambda s, c: s + c, x, b.constant(base, x.dtype))


def tree_ensemble(b: Builder, node: Node) -> Tensor:
    """The newest form, with sets of members and trees that are one leaf."""
    x, wide = as_rows(b, node.input(0)), working_type(node)
    x = b.cast(x, wide)
    forest = modern(node, wide)
    how = AGGREGATES[node.int("aggregate_function", 1)]
    made = aggregated(b, forest, leaves(b, node, x, forest), how, wide)
    made = transformed(b, node, made, TRANSFORMS[node.int("post_transform", 0)])
    return b.cast(made, node.output_dtypes[0])


def tree_regressor(b: Builder, node: Node) -> Tensor:
    x, wide = as_rows(b, node.input(0)), working_type(node)
    forest = classic(node, "target", node.int("n_targets", 1), wide)
    how = node.string("aggregate_function", "SUM")
    if how not in AGGREGATES:
        raise node.unsupported(f"aggregate_function {how} is not known")
    reached = leaves(b, node, b.cast(x, wide), forest)
    made = aggregated(b, forest, reached, how, wide)
    made = with_base(b, made, numbers(node, "base_values", wide))
    made = transformed(b, node, made, node.string("post_transform", "NONE"))
    return b.cast(made, FLOAT32)


def tree_classifier(b: Builder, node: Node) -> list[Tensor | None]:
    """Labels [rows] and scores [rows, classes].

    Two classes may have votes for one of them only, the second one's score.  Where none
    is negative and nothing transforms them, they are its probability.  An only class is
    everybody's label.
    """
    x, wide = as_rows(b, node.input(0)), working_type(node)
    classes, name = (
        integer_labels(node, "classlabels_int64s"),
        (node.string("post_transform", "NONE")),
    )
    forest = classic(node, "class", len(classes), wide)
    base = numbers(node, "base_values", wide)
    votes_for = sorted(set(node.ints("class_ids")))
    single = len(classes) == 2 and len(votes_for) == 1
    if base.size not in (0, 1 if single else len(classes)):
        raise node.unsupported(
            f"it has {len(classes)} classes, votes for {len(votes_for)} of them and "
            f"{base.size} base values",
            "give each class its votes and base value",
        )
    reached = leaves(b, node, b.cast(x, wide), forest)
    sums = aggregated(b, forest, reached, "SUM", wide)
    if not single:
        sums = with_base(b, sums, base)
        chosen = labels(b, sums, classes)
        return [chosen, b.cast(transformed(b, node, sums, name), FLOAT32)]
    sums = b.slice(sums, (0, votes_for[0]), (sums.shape[0], 1))
    sums = with_base(b, sums, base)
    if name == "NONE" and (forest.weights >= 0).all() and not (base < 0).any():
        scores = compared = shares(b, sums)
    else:
        scores, compared = two_sided(b, node, sums, name)
    return [labels(b, compared, classes), b.cast(scores, FLOAT32)]


OPERATORS = {
    "ai.onnx.ml.TreeEnsemble": tree_ensemble,
    "ai.onnx.ml.TreeEnsembleClassifier": tree_classifier,
    "ai.onnx.ml.TreeEnsembleRegressor": tree_regressor,
}
