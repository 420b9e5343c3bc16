"""Normalizations by batches, layers, groups, and roots of mean squares."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.torch.call import Call

T = ir.DataType


def affine(call: Call, like: str, count: int | ir.Value) -> tuple[ir.Value, ...]:
    """Weight and bias, ones and zeros where there are none."""
    found: list[ir.Value] = []
    for name, number in (("weight", 1), ("bias", 0)):
        given = call.optional(name)
        if given is None:
            one = call.w.constant(number, call.type_of(like))
            given = call.w("Expand", one, call.w.ints([count]))
        found.append(given)
    return tuple(found)


def batch_norm(call: Call) -> object:
    """With the statistics that the module keeps.

    `native_batch_norm` also gives statistics, for training only.
    """
    if call["training"] or not call.has("running_mean"):
        raise call.refuse(
            "takes statistics of the batch", hint="call module.eval() first"
        )
    x = call.value("input")
    weight, bias = affine(call, "input", call.extent("input", 1))
    mean, variance = (call.value(f"running_{n}") for n in ("mean", "var"))
    eps = float(call.number("eps"))
    made = call.w("BatchNormalization", x, weight, bias, mean, variance, epsilon=eps)
    single = not isinstance(call.out, tuple | list)
    return made if single else (made, *[None] * (len(call.out) - 1))


def layer_norm(call: Call) -> object:
    shape = call["normalized_shape"]
    axis = call.input_rank("input") - len(shape)
    dtype = call.type_of("input")
    weight = call.optional("weight", dtype)
    if weight is None:
        ones = call.sizes.all(call.fake("input").shape[axis:])
        weight = call.w("Expand", call.w.constant(1, dtype), call.w.ints(ones))
    made = call.w(
        "LayerNormalization", call.value("input"), weight, call.optional("bias", dtype),
        axis=axis, epsilon=float(call.number("eps")),
    )  # fmt: skip
    single = not isinstance(call.out, tuple | list)
    if not single and any(n.args[1] and n.users for n in call.node.users):
        raise call.refuse("asks for mean and deviation")
    return made if single else (made, None, None)


def group_norm(call: Call) -> ir.Value:
    groups = int(call["num_groups"])
    weight, bias = affine(call, "input", call.extent("input", 1))
    eps = float(call.number("eps"))
    x = call.value("input")
    return call.w("GroupNormalization", x, weight, bias, num_groups=groups, epsilon=eps)


def instance_norm(call: Call) -> ir.Value:
    if not call["use_input_stats"]:
        return batch_norm(call)  # type: ignore[return-value]
    weight, bias = affine(call, "input", call.extent("input", 1))
    x, eps = call.value("input"), float(call.number("eps"))
    return call.w("InstanceNormalization", x, weight, bias, epsilon=eps)


def rms_norm(call: Call) -> ir.Value:
    dtype = call.type_of("input")
    axis = call.input_rank("input") - len(call["normalized_shape"])
    eps = call["eps"]
    if eps is None:  # torch's default: of the type that it computes in
        wide = np.float64 if dtype == T.DOUBLE else np.float32
        eps = float(np.finfo(wide).eps)
    weight = call.optional("weight", dtype)
    if weight is None:
        shape = call.sizes.all(call.fake("input").shape[axis:])
        weight = call.w("Expand", call.w.constant(1, dtype), call.w.ints(shape))
    x = call.value("input")
    return call.w("RMSNormalization", x, weight, axis=axis, epsilon=float(eps))


def dropout(call: Call) -> object:
    training = call["train"] if "train" in call.args else call["training"]
    if training and call["p"]:
        raise call.refuse("drops numbers at random", hint="call module.eval() first")
    x = call.value("input" if "input" in call.args else "self")
    return (x, None) if isinstance(call.out, tuple | list) else x


OPERATORS = {
    "batch_norm": batch_norm, "native_batch_norm": batch_norm,
    "_native_batch_norm_legit_no_training": batch_norm,
    "_native_batch_norm_legit": batch_norm, "cudnn_batch_norm": batch_norm,
    "layer_norm": layer_norm, "native_layer_norm": layer_norm,
    "group_norm": group_norm, "instance_norm": instance_norm, "rms_norm": rms_norm,
    "dropout": dropout, "feature_dropout": dropout, "alpha_dropout": dropout,
    "native_dropout": dropout,
}  # fmt: skip
