"""Operators on quantized tensors: dequantized, computed, quantized again.

That is how models in QDQ format write them; the graph stage finds the integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.microsoft.activations import AXES_FROM_ONE
from nanoloom.frontend.microsoft.products import (
    WINDOW,
    channels_first,
    channels_last,
    same_size,
)
from nanoloom.frontend.microsoft.replacement import Replacement

Make = Callable[..., ir.Value]


def one(b: Replacement, value: ir.Value) -> ir.Value:
    """A scale or zero point of the whole tensor, as a scalar."""
    if b.types.shape(value) == []:
        return value
    return b.op("Reshape", value, b.constant(np.zeros(0, np.int64)))


def dequantized(b: Replacement, first: int) -> ir.Value:
    """Of three inputs in a row: the tensor, its scale and its zero point."""
    x, scale, zero = b.input(first), b.input(first + 1), b.optional(first + 2)
    zero = None if zero is None else one(b, zero)
    return b.op("DequantizeLinear", x, one(b, scale), zero)


def quantized(b: Replacement, x: ir.Value, first: int, like: ir.Value) -> ir.Value:
    """By two inputs in a row, a scale and a zero point; in the type of `like`."""
    scale, zero = b.input(first), b.optional(first + 1)
    start = b.scalar(0, like) if zero is None else one(b, zero)
    return b.op("QuantizeLinear", x, one(b, scale), start)


def binary(op_type: str) -> Callable[[Replacement], ir.Value]:
    def expand(b: Replacement) -> ir.Value:
        made = b.op(op_type, dequantized(b, 0), dequantized(b, 3))
        return quantized(b, made, 6, b.input(0))

    return expand


def unary(make: Make) -> Callable[[Replacement], ir.Value]:
    def expand(b: Replacement) -> ir.Value:
        return quantized(b, make(b, dequantized(b, 0)), 3, b.input(0))

    return expand


def sigmoid(b: Replacement, x: ir.Value) -> ir.Value:
    return b.op("Sigmoid", x)


def leaky_relu(b: Replacement, x: ir.Value) -> ir.Value:
    return b.op("LeakyRelu", x, alpha=b.float("alpha", 0.01))


def softmax(b: Replacement, x: ir.Value) -> ir.Value:
    """As Softmax was in an operator set: up to 12 it goes over all axes from one on."""
    if b.int("opset") <= AXES_FROM_ONE:
        return b.op("Softmax", x, axis=b.int("axis", 1), version=AXES_FROM_ONE)
    return b.op("Softmax", x, axis=b.int("axis", -1))


def images(make: Make) -> Make:
    """Of a pool: images whose channels may be last."""

    def expand(b: Replacement, x: ir.Value) -> ir.Value:
        if not b.int("channels_last", 0):
            return make(b, x)
        return channels_last(b, make(b, channels_first(b, x)))

    return expand


def average_pool(b: Replacement, x: ir.Value) -> ir.Value:
    given = {name: b.ints(name) for name in ("kernel_shape", "pads", "strides")}
    return b.op(
        "AveragePool", x, ceil_mode=b.int("ceil_mode", 0),
        count_include_pad=b.int("count_include_pad", 0), **same_size(b, given),
    )  # fmt: skip


def global_average_pool(b: Replacement, x: ir.Value) -> ir.Value:
    return b.op("GlobalAveragePool", x)


def reduce_mean(b: Replacement, x: ir.Value) -> ir.Value:
    axes, keepdims = b.ints("axes") or (), b.int("keepdims", 1)
    return b.op("ReduceMean", x, b.numbers(*axes), keepdims=keepdims)


def concat(b: Replacement) -> ir.Value:
    """Parts of scales of their own."""
    firsts = range(2, len(b.node.inputs), 3)
    parts = [dequantized(b, first) for first in firsts]
    made = b.op("Concat", *parts, axis=b.int("axis"))
    return quantized(b, made, 0, b.input(2))


def where(b: Replacement) -> ir.Value:
    made = b.op("Where", b.input(0), dequantized(b, 1), dequantized(b, 4))
    return quantized(b, made, 7, b.input(1))


def nhwc_max_pool(b: Replacement) -> ir.Value:
    given = {name: b.ints(name) for name in WINDOW}
    made = b.op(
        "MaxPool", channels_first(b, b.input(0)), ceil_mode=b.int("ceil_mode", 0),
        **same_size(b, given),
    )  # fmt: skip
    return channels_last(b, made)


def convolution(b: Replacement) -> ir.Value:
    """ONNX's own operator, of images whose channels may be last."""
    last = b.int("channels_last", 0)
    x = channels_first(b, b.input(0)) if last else b.input(0)
    others: Sequence[ir.Value | None] = [
        *(b.input(index) for index in range(1, 8)), b.optional(8)
    ]  # fmt: skip
    given = {name: b.ints(name) for name in WINDOW}
    made = b.op(
        "QLinearConv", x, *others, group=b.int("group", 1), **same_size(b, given)
    )
    return channels_last(b, made) if last else made


def dequantize_linear(b: Replacement) -> ir.Value:
    """ONNX's own, of types that it did not have once."""
    axis = b.int("axis", 1)
    return b.op("DequantizeLinear", b.input(0), b.input(1), b.optional(2), axis=axis)


def quantize_linear(b: Replacement) -> ir.Value:
    axis = b.int("axis", 1)
    return b.op("QuantizeLinear", b.input(0), b.input(1), b.optional(2), axis=axis)


OPERATORS = {
    "DequantizeLinear": dequantize_linear,
    "NhwcMaxPool": nhwc_max_pool,
    "QLinearAdd": binary("Add"),
    "QLinearAveragePool": unary(images(average_pool)),
    "QLinearConcat": concat,
    "QLinearConv": convolution,
    "QLinearGlobalAveragePool": unary(images(global_average_pool)),
    "QLinearLeakyRelu": unary(leaky_relu),
    "QLinearMul": binary("Mul"),
    "QLinearReduceMean": unary(reduce_mean),
    "QLinearSigmoid": unary(sigmoid),
    "QLinearSoftmax": unary(softmax),
    "QLinearWhere": where,
    "QuantizeLinear": quantize_linear,
}
