"""Activations: functions of elements that networks bend lines with."""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.frontend.torch.call import Call
from nanoloom.frontend.torch.elementwise import unary

T = ir.DataType


def silu(call: Call) -> ir.Value:
    x = call.value("self", call.dtype)
    return call.w("Mul", x, call.w("Sigmoid", x))


def gelu(call: Call) -> ir.Value:
    x = call.value("self", call.dtype)
    return call.w("Gelu", x, approximate=call["approximate"] or "none")


def leaky_relu(call: Call) -> ir.Value:
    slope = call.attribute(call.number("negative_slope"), call.dtype)
    return call.w("LeakyRelu", call.value("self", call.dtype), alpha=slope)


def elu(call: Call) -> ir.Value:
    if call["scale"] != 1 or call["input_scale"] != 1:
        raise call.refuse("has scales")
    alpha = call.attribute(call.number("alpha"), call.dtype)
    return call.w("Elu", call.value("self", call.dtype), alpha=alpha)


def softplus(call: Call) -> ir.Value:
    x = call.value("self", call.dtype)
    beta, threshold = call.number("beta"), call.number("threshold")
    times = x if beta == 1 else call.w("Mul", x, call.of(beta, call.dtype))
    soft = call.w("Softplus", times)
    if beta != 1:
        soft = call.w("Div", soft, call.of(beta, call.dtype))
    large = call.w.typed(T.BOOL, "Greater", times, call.of(threshold, call.dtype))
    return call.w.typed(call.dtype, "Where", large, x, soft)


def hardsigmoid(call: Call) -> ir.Value:
    slope = call.attribute(1 / 6, call.dtype)
    return call.w("HardSigmoid", call.value("self", call.dtype), alpha=slope, beta=0.5)


def hardtanh(call: Call) -> ir.Value:
    low, high = call["min_val"], call["max_val"]
    x = call.w("Max", call.value("self", call.dtype), call.of(low, call.dtype))
    return call.w("Min", x, call.of(high, call.dtype))


def relu6(call: Call) -> ir.Value:
    x = call.w("Relu", call.value("self", call.dtype))
    return call.w("Min", x, call.w.constant(6, call.dtype))


def prelu(call: Call) -> ir.Value:
    x, slope = call.value("self"), call.value("weight")
    if call.input_rank("weight") == 1 and call.rank > 2:
        slope = call.w.reshape(slope, [-1, *[1] * (call.rank - 2)])
    return call.w("PRelu", x, slope)


OPERATORS = {
    "relu": unary("Relu"), "hardswish": unary("HardSwish"), "mish": unary("Mish"),
    "silu": silu, "gelu": gelu, "leaky_relu": leaky_relu, "elu": elu,
    "softplus": softplus, "hardsigmoid": hardsigmoid, "hardtanh": hardtanh,
    "relu6": relu6, "prelu": prelu, "_prelu_kernel": prelu,
}  # fmt: skip
