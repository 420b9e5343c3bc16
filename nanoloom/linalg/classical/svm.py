"""SVMRegressor and SVMClassifier of ai.onnx.ml: kernels between rows and vectors."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from nanoloom.linalg.builder.builder import PARALLEL, REDUCTION, Builder
from nanoloom.linalg.builder.indexing import dims
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, constant, select
from nanoloom.linalg.builder.tensor import Array, Tensor
from nanoloom.linalg.classical.coupling import coupled
from nanoloom.linalg.classical.linear_models import as_rows
from nanoloom.linalg.classical.scores import (
    FLOAT32,
    integer_labels,
    labels,
    transformed,
    two_sided,
)

FLOAT64 = np.dtype(np.float64)


def kernels(b: Builder, node: Node, x: Tensor, vectors: Array) -> Tensor:
    """kernel(x[i], vectors[j]), [rows, vectors]."""
    gamma, offset, degree = [*node.floats("kernel_params"), 0.0, 0.0, 0.0][:3]
    table = b.constant(vectors.astype(x.dtype))
    kind = node.string("kernel_type", "LINEAR")
    if kind == "RBF":
        far = squared_distances(b, x, table)
        return b.elementwise(lambda s: (s * -gamma).math("exp"), far)
    products = b.einsum("nf,vf->nv", x, table)
    match kind:
        case "LINEAR":
            return products
        case "POLY" if degree == int(degree) and 0 <= degree <= 64:
            return b.elementwise(
                lambda s: power(s * gamma + offset, int(degree)), products
            )
        case "SIGMOID":
            return b.elementwise(lambda s: (s * gamma + offset).math("tanh"), products)
        case _:
            raise node.unsupported(f"kernel_type {kind} of degree {degree}")


def squared_distances(b: Builder, x: Tensor, table: Tensor) -> Tensor:
    """The sum of (x[i, k] - table[j, k])^2 over k."""
    shape = (x.shape[0], table.shape[0])

    def body(other: Scalar, one: Scalar, sofar: Scalar) -> Scalar:
        difference = one - other
        return sofar + difference * difference

    return b.generic(
        [(b.transpose(table, [1, 0]), dims(3, [2, 1])), (x, dims(3, [0, 2]))],
        [(b.full(shape, 0, x.dtype), dims(3, [0, 1]))],
        [PARALLEL, PARALLEL, REDUCTION],
        body,
    )[0]


def power(base: Scalar, exponent: int) -> Scalar:
    made = base * 0 + 1.0 if exponent == 0 else base
    for _ in range(exponent - 1):
        made = made * base
    return made


def table_of(node: Node, name: str, rows: int, columns: int) -> Array:
    """An attribute as a matrix."""
    given = node.floats(name)
    if len(given) != rows * columns:
        raise node.invalid(
            f"its {name} are {len(given)} numbers, expected {rows} x {columns}"
        )
    return np.array(given).reshape(rows, columns)


def as_features(b: Builder, node: Node) -> Tensor:
    x = as_rows(b, node.input(0))
    return b.cast(x, FLOAT64 if x.dtype == FLOAT64 else FLOAT32)


def svm_regressor(b: Builder, node: Node) -> Tensor:
    x, count = as_features(b, node), node.int("n_supports")
    columns, (rho,) = x.shape[1], table_of(node, "rho", 1, 1)[0]
    if count:
        x = kernels(b, node, x, table_of(node, "support_vectors", count, columns))
    weights = table_of(node, "coefficients", 1, x.shape[1])
    made = b.einsum("nv,cv->nc", x, b.constant(weights.astype(x.dtype)))
    made = b.elementwise(lambda s: s + float(rho), made)
    if node.int("one_class"):
        made = b.elementwise(
            lambda s: select(s > 0.0, constant(1, s.dtype), constant(-1, s.dtype)), made
        )
    made = transformed(b, node, made, node.string("post_transform", "NONE"))
    return b.cast(made, FLOAT32)


def svm_classifier(b: Builder, node: Node) -> list[Tensor | None]:
    """Labels [rows], and scores of each class or, without probabilities, each pair."""
    x, classes = as_features(b, node), integer_labels(node, "classlabels_ints")
    count, name = len(classes), node.string("post_transform", "NONE")
    if count < 2:
        raise node.unsupported(f"it has {count} class")
    if not sum(node.ints("vectors_per_class")):
        weights = table_of(node, "coefficients", count, x.shape[1])
        scores = b.einsum("nf,cf->nc", x, b.constant(weights.astype(x.dtype)))
        rho = node.floats("rho")[0]
        scores = b.elementwise(lambda s: s + rho, scores)
        chosen = labels(b, scores, classes)
    else:
        scores = decisions(b, node, x, count)
        chosen = labels(b, votes(b, scores, count), classes)
        if node.floats("prob_a"):
            scores = coupled(b, node, scores, count)
        elif count == 2:
            return [chosen, b.cast(two_sided(b, node, scores, name)[0], FLOAT32)]
    return [chosen, b.cast(transformed(b, node, scores, name), FLOAT32)]


def decisions(b: Builder, node: Node, x: Tensor, count: int) -> Tensor:
    """The score of each pair of classes, [rows, pairs]: positive for the first.

    A pair sums over the vectors of both; each class has one coefficient of a vector
    for every other class.
    """
    sizes = node.ints("vectors_per_class")
    if len(sizes) != count:
        raise node.invalid(f"it has vectors of {len(sizes)} classes, but {count}")
    total, ends = sum(sizes), np.cumsum(sizes)
    vectors = table_of(node, "support_vectors", total, x.shape[1])
    given = table_of(node, "coefficients", count - 1, total)
    pairs = list(combinations(range(count), 2))
    weights = np.zeros((len(pairs), total))
    for row, (i, j) in enumerate(pairs):
        for own, other in ((i, j - 1), (j, i)):
            part = slice(ends[own] - sizes[own], ends[own])
            weights[row, part] = given[other, part]
    found = kernels(b, node, x, vectors)
    table = b.constant(weights.astype(x.dtype))
    rho = table_of(node, "rho", 1, len(pairs))[0].astype(x.dtype)
    made = b.einsum("nv,pv->np", found, table)
    return b.elementwise(lambda s, r: s + r, made, b.constant(rho))


def votes(b: Builder, scores: Tensor, count: int) -> Tensor:
    """How many pairs each class wins, less a number that is the same for all rows."""
    gained = np.zeros((len(list(combinations(range(count), 2))), count))
    for row, (i, j) in enumerate(combinations(range(count), 2)):
        gained[row, i], gained[row, j] = 1, -1
    lost = -np.minimum(gained, 0).sum(axis=0)
    kind = scores.dtype
    won = b.elementwise(lambda s: (s > 0.0).cast(kind), scores)
    made = b.einsum("np,pc->nc", won, b.constant(gained.astype(kind)))
    return b.elementwise(lambda s, c: s + c, made, b.constant(lost.astype(kind)))


OPERATORS = {
    "ai.onnx.ml.SVMClassifier": svm_classifier,
    "ai.onnx.ml.SVMRegressor": svm_regressor,
}
