"""Normalizations by batches, layers, groups, and roots of mean squares."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.torch.call import Call, keeps_statistics

T = ir.DataType


def computed_in(call: Call) -> ir.DataType:
    """The widest of the tensors' types: weights may stay f32 where rows are bf16."""
    names = ("input", "weight", "bias", "running_mean")
    found = [call.type_of(name) for name in names if call.has(name)]
    return max(found, key=lambda dtype: dtype.bitwidth)


def affine(
    call: Call, dtype: ir.DataType, shape: list[int | ir.Value]
) -> list[ir.Value]:
    """Weight and bias, ones and zeros where there are none."""
    found: list[ir.Value] = []
    for name, number in (("weight", 1), ("bias", 0)):
        given = call.optional(name, dtype)
        if given is None:
            given = call.w.constant(number, dtype)
            given = call.w("Expand", given, call.w.ints(shape))
        found.append(given)
    return found


def results(call: Call, made: ir.Value, asked: str) -> object:
    """The result alone, or with what only training asks for."""
    made = call.w.cast(made, call.dtype)
    if not isinstance(call.out, tuple | list):
        return made
    if any(n.args[1] and n.users for n in call.node.users):
        raise call.refuse(f"asks for {asked}")
    return (made, *[None] * (len(call.out) - 1))


def batch_norm(call: Call) -> object:
    """With the statistics that the module keeps."""
    if call["training"] or call["use_input_stats"] or not call.has("running_mean"):
        raise call.refuse(
            "takes statistics of the batch", hint="call module.eval() first"
        )
    if call.input_rank("input") < 2:
        raise call.refuse("has no axis of channels")
    dtype = computed_in(call)
    weight, bias = affine(call, dtype, [call.extent("input", 1)])
    mean, variance = (call.value(f"running_{n}", dtype) for n in ("mean", "var"))
    x, eps = call.value("input", dtype), epsilon(call, dtype)
    made = call.w("BatchNormalization", x, weight, bias, mean, variance, epsilon=eps)
    return results(call, made, "statistics")


def normalized(call: Call, op: str, biased: bool) -> ir.Value:
    dtype = computed_in(call)
    axis = call.input_rank("input") - len(call["normalized_shape"])
    x, weight = call.value("input", dtype), call.optional("weight", dtype)
    if weight is None:
        shape = call.sizes.all(call.fake("input").shape[axis:])
        weight = call.w("Expand", call.w.constant(1, dtype), call.w.ints(shape))
    given = [weight, call.optional("bias", dtype)] if biased else [weight]
    return call.w(op, x, *given, axis=axis, epsilon=epsilon(call, dtype))


def epsilon(call: Call, dtype: ir.DataType) -> float:
    """torch's own, where none is given, is of the type that it computes in."""
    if call["eps"] is None:
        wide = np.float64 if dtype == T.DOUBLE else np.float32
        return float(np.finfo(wide).eps)
    return call.attribute(call.number("eps"), dtype)


def layer_norm(call: Call) -> object:
    made = normalized(call, "LayerNormalization", True)
    return results(call, made, "mean and deviation")


def rms_norm(call: Call) -> object:
    return results(call, normalized(call, "RMSNormalization", False), "deviation")


def group_norm(call: Call) -> object:
    dtype = computed_in(call)
    groups = int(call["num_groups"])
    weight, bias = affine(call, dtype, [call.extent("input", 1)])
    x, eps = call.value("input", dtype), epsilon(call, dtype)
    made = call.w("GroupNormalization", x, weight, bias, num_groups=groups, epsilon=eps)
    return results(call, made, "mean and deviation")


def instance_norm(call: Call) -> object:
    if not call["use_input_stats"]:
        return batch_norm(call)
    if keeps_statistics(call.node):
        reason = "changes the statistics that the module keeps"
        raise call.refuse(reason, hint="call module.eval() first")
    dtype = computed_in(call)
    weight, bias = affine(call, dtype, [call.extent("input", 1)])
    x, eps = call.value("input", dtype), epsilon(call, dtype)
    made = call.w("InstanceNormalization", x, weight, bias, epsilon=eps)
    return results(call, made, "mean and deviation")


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
