"""TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier of ai.onnx.ml."""

from __future__ import annotations

import numpy as np

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.tensor import Array, Tensor
from nanoloom.linalg.classical.forest import classic, modern, numbers
from nanoloom.linalg.classical.leaf_weights import aggregated
from nanoloom.linalg.classical.linear_models import as_rows
from nanoloom.linalg.classical.scores import (
    FLOAT32,
    integer_labels,
    labels,
    shares,
    transformed,
    two_sided,
)

FLOAT64 = np.dtype(np.float64)
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def working_type(node: Node) -> np.dtype:
    """Thresholds and weights are f64 where the model keeps them as such, else f32."""
    names = ("nodes_values_as_tensor", "nodes_splits")
    tables = [node.array(name) for name in names]
    doubles = any(t is not None and t.dtype == FLOAT64 for t in tables)
    return FLOAT64 if doubles else FLOAT32


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
    made = aggregated(b, node, x, forest, how)
    made = transformed(b, node, made, TRANSFORMS[node.int("post_transform", 0)])
    return b.cast(made, node.output_dtypes[0])


def tree_regressor(b: Builder, node: Node) -> Tensor:
    x, wide = as_rows(b, node.input(0)), working_type(node)
    forest = classic(node, "target", node.int("n_targets", 1), wide)
    how = node.string("aggregate_function", "SUM")
    if how not in AGGREGATES:
        raise node.unsupported(f"aggregate_function {how} is not known")
    made = aggregated(b, node, b.cast(x, wide), forest, how)
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
    sums = aggregated(b, node, b.cast(x, wide), forest, "SUM")
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
