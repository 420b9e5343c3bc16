"""Scores of the classifiers and regressors of ai.onnx.ml: transforms and labels."""

from __future__ import annotations

from math import pi

import numpy as np

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.indexing import INT64
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.placed_operands import BroadcastOperand, combine
from nanoloom.linalg.builder.scalar import Scalar, select
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.elementwise.activations import sigmoid
from nanoloom.linalg.reductions.arguments import positions
from nanoloom.linalg.reductions.reduce import lowest
from nanoloom.linalg.reductions.softmax import normalized

FLOAT32 = np.dtype(np.float32)
TINY = 1e-7  # SOFTMAX_ZERO leaves scores below this one at zero
WINITZKI = 0.147  # of the approximation that ONNX's probit is computed with


def transformed(b: Builder, node: Node, scores: Tensor, name: str) -> Tensor:
    """post_transform on scores [rows, classes]."""
    match name:
        case "NONE":
            return scores
        case "LOGISTIC":
            return b.elementwise(sigmoid, scores)
        case "SOFTMAX":
            return normalized(b, scores, [1], scores.dtype)
        case "SOFTMAX_ZERO":
            return softmax_zero(b, scores)
        case "PROBIT":
            return b.elementwise(probit, scores)
        case _:
            raise node.unsupported(f"post_transform {name} is not known")


def two_sided(
    b: Builder, node: Node, score: Tensor, name: str
) -> tuple[Tensor, Tensor]:
    """Scores of two classes from the second one's, [rows, 1]; what the label goes by.

    The first one's is the same with the other sign, before it is transformed; a probit
    is defined for probabilities only, and has its sign changed behind.
    """
    if name == "PROBIT":
        made = both_signs(b, transformed(b, node, score, name))
        return made, made
    signed = both_signs(b, score)
    return transformed(b, node, signed, name), signed


def both_signs(b: Builder, score: Tensor) -> Tensor:
    """[rows, 1] as [rows, 2]: -score and score."""
    signs = b.constant(np.array([-1, 1], score.dtype))
    return b.elementwise(lambda value, sign: value * sign, score, signs)


def shares(b: Builder, score: Tensor) -> Tensor:
    """[rows, 1], a probability, as [rows, 2]: what is left of one, and the score."""
    halves = b.constant(np.array([1, 0], score.dtype))
    return b.elementwise(lambda s, c: s + c, both_signs(b, score), halves)


def softmax_zero(b: Builder, scores: Tensor) -> Tensor:
    """Softmax that keeps scores of zero at zero; 0.5 where all are zero."""
    along = (0,)
    top = b.reduce(
        lambda s, x: s.maximum(x), scores, [1], lowest(scores.dtype), keepdims=False
    )

    def grow(score: Scalar, most: Scalar) -> Scalar:
        scaled = score * (-most).math("exp")
        return select(score.absolute() > TINY, (score - most).math("exp"), scaled)

    dtype = scores.dtype
    grown = combine(b, grow, scores.shape, dtype, scores, BroadcastOperand(top, along))
    total = b.reduce(lambda s, x: s + x, grown, [1], 0, keepdims=False)

    def share(value: Scalar, whole: Scalar) -> Scalar:
        return select(whole.equal(0), value * 0 + 0.5, value / whole)

    return combine(b, share, scores.shape, dtype, grown, BroadcastOperand(total, along))


def probit(score: Scalar) -> Scalar:
    """The inverse of the normal distribution, as runtimes of ONNX approximate it."""
    x = score * 2 - 1
    logarithm = ((1 - x) * (1 + x)).math("log")
    half = logarithm * 0.5 + 2 / (pi * WINITZKI)
    inner = (half * half - logarithm * (1 / WINITZKI)).math("sqrt") - half
    return inner.math("sqrt").math("copysign", x) * 1.41421356


def labels(b: Builder, scores: Tensor, classes: list[int]) -> Tensor:
    """int64 [rows]: the class of the largest score, the first of equal ones."""
    place = positions(b, scores, 1, largest=True, last=False)
    if classes == list(range(len(classes))):
        return place
    table = b.value(b.constant(np.array(classes, np.int64)))
    last = len(classes) - 1
    return b.elementwise(
        lambda p: b.load(table, INT64, [p.maximum(0).minimum(last)]), place
    )


def integer_labels(node: Node, name: str) -> list[int]:
    """The classes of a classifier, which must be numbers."""
    classes = node.ints(name)
    if not classes:
        raise node.unsupported(
            "its class labels are strings",
            "give it integer labels, and translate them outside of the model",
        )
    return classes
