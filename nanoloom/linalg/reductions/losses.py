"""NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss, classes along dimension 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nanoloom.linalg.builder.builder import Builder, computed_as
from nanoloom.linalg.builder.index_checks import check
from nanoloom.linalg.builder.indexing import INT64, position, wrapped
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.placed_operands import combine
from nanoloom.linalg.builder.scalar import Scalar, constant, select
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.reductions.reduce import add
from nanoloom.linalg.reductions.softmax import log_probabilities


def negative_log_likelihood(b: Builder, node: Node) -> Tensor:
    return picked_loss(b, node, node.input(0))


def softmax_cross_entropy(b: Builder, node: Node) -> Sequence[Tensor | None]:
    """The loss, and the logarithms of the probabilities if they are wanted."""
    x = node.input(0)
    logarithms = log_probabilities(b, x, [1], computed_as(x.dtype))
    loss = picked_loss(b, node, logarithms)
    if len(node.wanted) < 2 or not node.wanted[1]:
        return [loss]
    return [loss, b.cast(logarithms, node.output_dtypes[1])]


def class_weights(b: Builder, node: Node, target: Tensor, dtype: np.dtype) -> Tensor:
    """What each target counts: its class's weight or 1, and 0 where it is ignored."""
    weight = node.optional(2)
    ignored = ignored_target(node)
    table = None if weight is None else b.value(weight)

    def body(t: Scalar) -> Scalar:
        found = constant(1, dtype)
        if table is not None and weight is not None:
            place = wrapped(t, weight.shape[0])
            found = b.load(table, weight.dtype, [place]).cast(dtype)
        if ignored is None:
            return found
        return select(t.cast(INT64).equal(ignored), constant(0, dtype), found)

    return combine(b, body, target.shape, dtype, target)


def ignored_target(node: Node) -> int | None:
    return node.int("ignore_index") if node.has("ignore_index") else None


def picked_loss(b: Builder, node: Node, logarithms: Tensor) -> Tensor:
    """-weight[t] * logarithms[n, t, ...], then none, the sum, or the weighted mean."""
    target, dtype = node.input(1), node.output_dtypes[0]
    wide, classes = computed_as(dtype), logarithms.shape[1]
    check(b, node, target, range(classes), "target", ignored_target(node))
    weights = class_weights(b, node, target, wide)
    table = b.value(logarithms)

    def body(t: Scalar, weight: Scalar) -> Scalar:
        at = [position(d) for d in range(target.rank)]
        at.insert(1, wrapped(t, classes))
        found = b.load(table, logarithms.dtype, at).cast(wide)
        return select(weight.equal(0), constant(0, wide), -found * weight)

    each = combine(b, body, target.shape, wide, target, weights)
    form = node.string("reduction", "mean")
    if form not in ("none", "sum", "mean"):
        raise node.unsupported(f"reduction = {form!r}", "use none, sum or mean")
    if form == "none":
        return b.cast(each, dtype)
    axes = range(target.rank)
    total = b.reduce(add, each, axes, 0, keepdims=False)
    if form == "mean":
        count = b.reduce(add, weights, axes, 0, keepdims=False)
        total = b.elementwise(lambda s, n: s / n, total, count)
    return b.cast(total, dtype)


OPERATORS = {
    "NegativeLogLikelihoodLoss": negative_log_likelihood,
    "SoftmaxCrossEntropyLoss": softmax_cross_entropy,
}
