"""Activation functions, each the formula of its ONNX definition in a stable form."""

from __future__ import annotations

import math

from nanoloom.linalg.builder.builder import Builder
from nanoloom.linalg.builder.node import Node
from nanoloom.linalg.builder.scalar import Scalar, is_float, select
from nanoloom.linalg.builder.tensor import Tensor
from nanoloom.linalg.elementwise.arithmetic import FLOAT64, Formula, Lower, simple


def with_attributes(formula: Formula, **defaults: float) -> Lower:
    """formula(x, attribute, ...): float attributes in this order, with defaults."""

    def lower(b: Builder, node: Node) -> Tensor:
        numbers = [node.float(name, default) for name, default in defaults.items()]
        return b.elementwise(lambda x: formula(x, *numbers), node.input(0))

    return lower


def sigmoid(x: Scalar) -> Scalar:
    """1 / (1 + exp(-x)): right at both ends, where exp is infinite or 0."""
    grown = (-x.absolute()).exp_nonpositive()
    return select(x < 0, grown, 1) / (grown + 1)


def swish(x: Scalar, alpha: float) -> Scalar:
    scaled = x if alpha == 1.0 else x * alpha
    return x / ((-scaled).math("exp") + 1)


def gelu(b: Builder, node: Node) -> Tensor:
    chosen = {"none": gelu_erf, "tanh": gelu_tanh}
    form = node.string("approximate", "none")
    if form not in chosen:
        raise node.unsupported(
            f"approximate = {form!r} is not known", 'use "none" or "tanh"'
        )
    return b.elementwise(chosen[form], node.input(0))


def gelu_erf(x: Scalar) -> Scalar:
    return x * 0.5 * ((x * math.sqrt(0.5)).math("erf") + 1)


def gelu_tanh(x: Scalar) -> Scalar:
    inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
    return x * 0.5 * (inner.math("tanh") + 1)


def hard_sigmoid(x: Scalar, alpha: float, beta: float) -> Scalar:
    return (x * alpha + beta).minimum(1).maximum(0)


def hard_swish(x: Scalar) -> Scalar:
    return x * hard_sigmoid(x, 1 / 6, 0.5)


def mish(x: Scalar) -> Scalar:
    """x * tanh(softplus(x)), rational in t = exp(-|x|), which cannot overflow."""
    t = (-x.absolute()).math("exp")
    square = t * t
    twice = t + t
    positive = x >= 0
    numerator = select(positive, twice + 1, square + twice)
    return x * (numerator / (numerator + select(positive, square + square, 2)))


def softplus(x: Scalar) -> Scalar:
    """log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|))."""
    return x.maximum(0) + (-x.absolute()).math("exp").math("log1p")


def elu(x: Scalar, alpha: float) -> Scalar:
    return select(x > 0, x, x.math("expm1") * alpha)


def celu(x: Scalar, alpha: float) -> Scalar:
    return select(x > 0, x, (x / alpha).math("expm1") * alpha)


def selu(x: Scalar, alpha: float, gamma: float) -> Scalar:
    return elu(x, alpha) * gamma


def leaky_relu(x: Scalar, alpha: float) -> Scalar:
    return select(x < 0, x * alpha, x)


def p_relu(b: Builder, node: Node) -> Tensor:
    """x * slope below zero; before opset 7 a vector of slopes is one a channel."""
    x, slope = node.input(0), node.input(1)
    if node.version < 7 and slope.rank == 1 and slope.size > 1:
        slope = b.reshape(slope, (slope.size, *(1,) * (x.rank - 2)))
    return b.elementwise(lambda s, factor: select(s < 0, s * factor, s), x, slope)


def thresholded_relu(x: Scalar, alpha: float) -> Scalar:
    return select(x > alpha, x, 0)


def shrink(b: Builder, node: Node) -> Tensor:
    """x + bias below -lambd, x - bias above lambd, 0 between.

    Limits need not be whole numbers: integers are compared and moved in f64.
    """
    bias, lambd = node.float("bias", 0.0), node.float("lambd", 0.5)

    def body(x: Scalar) -> Scalar:
        wide = x if is_float(x.dtype) else x.cast(FLOAT64)
        high = select(wide > lambd, wide - bias, 0)
        return select(wide < -lambd, wide + bias, high).cast(x.dtype)

    return b.elementwise(body, node.input(0))


OPERATORS: dict[str, Lower] = {
    "Celu": with_attributes(celu, alpha=1.0),
    "Elu": with_attributes(elu, alpha=1.0),
    "Gelu": gelu,
    "HardSigmoid": with_attributes(hard_sigmoid, alpha=0.2, beta=0.5),
    "HardSwish": simple(hard_swish),
    "LeakyRelu": with_attributes(leaky_relu, alpha=0.01),
    "Mish": simple(mish),
    "PRelu": p_relu,
    "Relu": simple(lambda x: x.maximum(0)),
    "Selu": with_attributes(
        selu, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875
    ),
    "Shrink": shrink,
    "Sigmoid": simple(sigmoid),
    "Softplus": simple(softplus),
    "Softsign": simple(lambda x: x / (x.absolute() + 1)),
    "Swish": with_attributes(swish, alpha=1.0),
    "ThresholdedRelu": with_attributes(thresholded_relu, alpha=1.0),
}
