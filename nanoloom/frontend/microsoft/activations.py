"""Activations, with the biases that are added in front."""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.frontend.microsoft.replacement import VERSION, Refused, Replacement

AXES_FROM_ONE = 12  # the last opset whose Softmax goes over all axes from one on


def gelu(b: Replacement) -> ir.Value:
    return b.op("Gelu", b.input(0))


def bias_gelu(b: Replacement) -> ir.Value:
    return b.op("Gelu", b.op("Add", b.input(0), b.input(1)))


def fast_gelu(b: Replacement) -> ir.Value:
    """By tanh."""
    x, bias = b.input(0), b.optional(1)
    total = x if bias is None else b.op("Add", x, bias)
    return b.op("Gelu", total, approximate="tanh")


def quick_gelu(b: Replacement) -> ir.Value:
    """x * sigmoid(alpha * x)."""
    x, alpha = b.input(0), b.float("alpha", 1.702)
    scaled = x if alpha == 1.0 else b.op("Mul", x, b.scalar(alpha, x))
    return b.op("Mul", x, b.op("Sigmoid", scaled))


def bias_split_gelu(b: Replacement) -> ir.Value:
    """One half times Gelu of the other one."""
    total = b.op("Add", b.input(0), b.input(1))
    half, gate = b.ops("Split", total, outputs=2, axis=-1, num_outputs=2)
    return b.op("Mul", half, b.op("Gelu", gate))


def bias_softmax(b: Replacement) -> ir.Value:
    """Softmax over all axes from one on; ONNX broadcasts the bias in either way."""
    b.ignore("is_inner_broadcast")  # the bias has extents of 1 where it is repeated
    return softmax(b, b.op("Add", b.input(0), b.input(1)), b.int("axis", 1))


def softmax(b: Replacement, x: ir.Value, axis: int) -> ir.Value:
    """Over all axes from one on: along it, if it is the last."""
    if axis in (-1, b.rank(x) - 1):
        return b.op("Softmax", x, axis=-1)
    return b.op("Softmax", x, axis=axis, version=AXES_FROM_ONE)


def bias_dropout(b: Replacement) -> list[ir.Value | None]:
    """As a model is run: nothing is dropped."""
    total, residual = b.op("Add", b.input(0), b.input(1)), b.optional(2)
    for index in (3, 4):
        b.optional(index)  # ratio and training_mode
    b.ignore("seed")
    return [total if residual is None else b.op("Add", total, residual)]


def bias_add(b: Replacement) -> ir.Value:
    return b.op("Add", b.op("Add", b.input(0), b.input(1)), b.input(2))


# ---- fused behind a product

NO_PARAMETERS = ("Relu", "Sigmoid", "Softplus", "Softsign", "Tanh", "HardSwish", "Gelu")
PARAMETERS = {
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Selu": ("alpha", "gamma"),
    "ThresholdedRelu": ("alpha",),
}


def activate(
    b: Replacement, x: ir.Value, name: str, given: dict[str, float] | list[float]
) -> ir.Value:
    """given: parameters by their names, or in the order of PARAMETERS."""
    if not name:
        return x
    if name in NO_PARAMETERS:
        return b.op(name, x)
    if name == "Clip" and isinstance(given, list) and len(given) == 2:
        return b.op("Clip", x, *(b.scalar(limit, x) for limit in given))
    if name not in PARAMETERS:
        raise Refused(f"its attribute activation = {name} is not supported")
    names = PARAMETERS[name]
    if isinstance(given, list):
        given = dict(zip(names, given, strict=False))
    known = {key: value for key, value in given.items() if key in names}
    return b.op(name, x, version=VERSION, **known)


OPERATORS = {
    "BiasAdd": bias_add,
    "BiasDropout": bias_dropout,
    "BiasGelu": bias_gelu,
    "BiasSoftmax": bias_softmax,
    "BiasSplitGelu": bias_split_gelu,
    "FastGelu": fast_gelu,
    "Gelu": gelu,
    "QuickGelu": quick_gelu,
}
