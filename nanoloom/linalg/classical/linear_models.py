"""LinearRegressor and LinearClassifier of ai.onnx.ml."""

from __future__ import annotations

import numpy as np

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.indexing import INT64
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, constant, select
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.classical.scores import (
    FLOAT32,
    integer_labels,
    labels,
    transformed,
    two_sided,
)

FLOAT64 = np.dtype(np.float64)


def linear(b: Builder, node: Node, x: Tensor, rows: int) -> Tensor:
    """x W^T + intercepts with the node's coefficients [rows, features]."""
    columns = x.shape[-1]
    given, intercepts = node.floats("coefficients"), node.floats("intercepts")
    if len(given) != rows * columns or len(intercepts) not in (0, rows):
        raise node.unsupported(
            f"it has {len(given)} coefficients and {len(intercepts)} intercepts, "
            f"which do not fit {rows} results of {columns} features"
        )
    wide = FLOAT64 if x.dtype == FLOAT64 else FLOAT32
    w = b.constant(np.array(given, wide).reshape(rows, columns))
    made = b.einsum("nk,fk->nf", b.cast(x, wide), w)
    if not intercepts:
        return made
    return b.elementwise(
        lambda s, c: s + c, made, b.constant(np.array(intercepts, wide))
    )


def as_rows(b: Builder, x: Tensor) -> Tensor:
    """A vector of features is one row."""
    return b.reshape(x, (1, x.size)) if x.rank == 1 else x


def linear_regressor(b: Builder, node: Node) -> Tensor:
    x = as_rows(b, node.input(0))
    made = linear(b, node, x, node.int("targets", 1))
    made = transformed(b, node, made, node.string("post_transform", "NONE"))
    return b.reshape(b.cast(made, FLOAT32), node.output_shapes[0])


def linear_classifier(b: Builder, node: Node) -> list[Tensor | None]:
    """Labels [rows] and scores [rows, classes].

    Two classes may share one set of coefficients, the second class's.  One class, or
    none, is told from label 0 by the sign of its score.
    """
    x, name = as_rows(b, node.input(0)), node.string("post_transform", "NONE")
    rows = len(node.floats("coefficients")) // max(x.shape[-1], 1)
    if rows == 1 and len(node.ints("classlabels_ints")) < 2:
        return one_class(b, node, linear(b, node, x, 1), name)
    classes = integer_labels(node, "classlabels_ints")
    single = rows == 1 and len(classes) == 2
    if (rows != len(classes) and not single) or len(classes) < 2:
        raise node.unsupported(
            f"it has coefficients for {rows} scores, but {len(classes)} classes"
        )
    scores = linear(b, node, x, rows)
    if single:
        made, compared = two_sided(b, node, scores, name)
    else:
        made, compared = transformed(b, node, scores, name), scores
    chosen = labels(b, compared, classes)
    return [b.reshape(chosen, node.output_shapes[0]), b.cast(made, FLOAT32)]


def one_class(b: Builder, node: Node, score: Tensor, name: str) -> list[Tensor | None]:
    """The only label, 1 without any, where the score is positive; else 0."""
    label = [*node.ints("classlabels_ints"), 1][0]

    def chosen(value: Scalar) -> Scalar:
        return select(value > 0.0, constant(label, INT64), constant(0, INT64))

    made = b.cast(transformed(b, node, score, name), FLOAT32)
    found = b.elementwise(chosen, score, dtype=INT64)
    return [b.reshape(found, node.output_shapes[0]), made]


OPERATORS = {
    "ai.onnx.ml.LinearClassifier": linear_classifier,
    "ai.onnx.ml.LinearRegressor": linear_regressor,
}
