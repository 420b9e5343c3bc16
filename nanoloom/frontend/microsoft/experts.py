"""Mixtures of experts: a router chooses some of them for each token.

All experts see all tokens, in two products; what was not chosen weighs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.microsoft.quantized_weights import (
    bits_of,
    bytes_tensor,
    require_count,
    unpacked,
)
from nanoloom.frontend.microsoft.replacement import Refused, Replacement

FLOAT = ir.DataType.FLOAT
INTERLEAVED = 1  # swiglu_fusion: gates and values lie in turns


@dataclass(frozen=True)
class Layers:
    """Weights [experts, out, in] and biases [experts, out] of the two products."""

    first: ir.Value
    first_bias: ir.Value | None
    second: ir.Value
    second_bias: ir.Value | None
    gate: ir.Value | None = None
    gate_bias: ir.Value | None = None


def mixture(b: Replacement) -> ir.Value:
    gate = b.optional(6)
    layers = Layers(
        b.input(2), b.optional(3), b.input(4), b.optional(5), gate, b.optional(7)
    )
    logits = floats(b, b.input(1))
    over_all = not b.int("normalize_routing_weights", 0)
    return mixed(b, layers, b.op("Softmax", logits, axis=-1) if over_all else None)


def quantized_mixture(b: Replacement) -> ir.Value:
    """The same with weights of 2, 4 or 8 bits, a scale for each row or block."""
    if (kind := b.string("quant_type", "int")) != "int":
        raise Refused(f"its attribute quant_type = {kind} is not supported")
    if b.int("weights_prepacked", -1) == 1:
        raise Refused("its attribute weights_prepacked = 1 is not supported")
    b.ignore("accuracy_level")  # at least f32 is computed with here
    first = weights(b, 2, 3, 11, "fc1_expert_weight_bits")
    second = weights(b, 5, 6, 12, "fc2_expert_weight_bits")
    gate = b.optional(8)
    if gate is not None:
        gate = weights(b, 8, 9, 13, "fc3_expert_weight_bits")
    layers = Layers(first, b.optional(4), second, b.optional(7), gate, b.optional(10))
    shares, normalized = b.optional(14), b.int("normalize_routing_weights", 0)
    if shares is None:
        return mixed(b, layers, None)
    return mixed(b, layers, floats(b, shares), normalized=bool(normalized))


def weights(
    b: Replacement, at: int, scales_at: int, zeros_at: int, own: str
) -> ir.Value:
    """[experts, out, in] in floats, of packed numbers and their scales."""
    packed, scales = b.tensor(b.input(at)), b.input(scales_at)
    bits = b.int(own, bits_of(b, "expert_weight_bits"))
    if packed.dtype != ir.DataType.UINT8 or len(packed.shape) != 3:
        raise Refused(f"its input {at} is no packed weight")
    experts, rows, wide = (int(d) for d in packed.shape.numpy())
    depth = wide * 8 // bits
    block = b.int("block_size", 0) or depth
    shape, blocks = (experts * rows, depth), depth // block
    whole = bytes_tensor(packed, shape, lambda x: unpacked(x, bits, shape[0]))
    zeros = b.optional(zeros_at)
    if zeros is None:
        middle = b.constant(np.full((shape[0], blocks), 1 << (bits - 1), np.uint8))
    else:
        middle = b.constant(zero_points(b, zeros, bits, experts, rows, blocks))
    scales = b.op("Reshape", scales, b.numbers(shape[0], blocks))
    made = b.op(
        "DequantizeLinear", b.constant(whole), scales, middle, axis=1, block_size=block
    )
    return b.op("Reshape", made, b.numbers(experts, rows, depth))


def zero_points(
    b: Replacement, value: ir.Value, bits: int, experts: int, rows: int, blocks: int
) -> ir.TensorProtocol:
    """Packed along the rows of an expert, or along the blocks of a row."""
    packed, shape = b.tensor(value), (experts * rows, blocks)
    if len(packed.shape) == 2:
        require_count(b, packed, experts * -(-rows * bits // 8))
        return bytes_tensor(
            packed, shape, lambda x: unpacked(x, bits, experts)[:, :rows]
        )
    require_count(b, packed, shape[0] * -(-blocks * bits // 8))
    return bytes_tensor(packed, shape, lambda x: unpacked(x, bits, shape[0]))


def mixed(
    b: Replacement,
    layers: Layers,
    shares: ir.Value | None,
    *,
    normalized: bool = False,
) -> ir.Value:
    """shares: of each expert; by default the softmax of what chose among the chosen.

    normalized: those of the chosen ones add up to one.
    """
    x, kind = b.input(0), b.dtype(b.input(0))
    b.require("use_sparse_mixer", 0)
    wide = floats(b, x)
    tokens = b.op(
        "Reshape",
        wide,
        b.op("Concat", b.numbers(-1), b.op("Shape", x, start=-1), axis=0),
    )
    hidden = product(b, tokens, layers.first, layers.first_bias)
    gated = layers.gate and product(b, tokens, layers.gate, layers.gate_bias)
    chosen = routed(b, floats(b, b.input(1)), shares, normalized=normalized)
    active = b.op(
        "Mul", activated(b, hidden, gated), b.op("Unsqueeze", chosen, b.numbers(2))
    )
    rows = b.op(
        "Reshape",
        active,
        b.op("Concat", b.op("Shape", active, end=1), b.numbers(-1), axis=0),
    )
    second = floats(b, layers.second)
    turned = b.op("Transpose", second, perm=[0, 2, 1])
    stacked = b.op(
        "Reshape",
        turned,
        b.op("Concat", b.numbers(-1), b.op("Shape", second, start=1, end=2), axis=0),
    )
    made = b.op("MatMul", rows, stacked)
    if layers.second_bias is not None:
        made = b.op("Add", made, b.op("MatMul", chosen, floats(b, layers.second_bias)))
    made = b.op("Reshape", made, b.op("Shape", x))
    return made if kind == FLOAT else b.op("Cast", made, to=int(kind))


def floats(b: Replacement, x: ir.Value) -> ir.Value:
    return x if b.dtype(x) == FLOAT else b.op("Cast", x, to=int(FLOAT))


def product(
    b: Replacement, tokens: ir.Value, weight: ir.Value, bias: ir.Value | None
) -> ir.Value:
    """[tokens, experts, out] of weights [experts, out, in]."""
    wide = floats(b, weight)
    shape = b.op("Shape", wide)
    rows = b.op(
        "Reshape",
        wide,
        b.op("Concat", b.numbers(-1), b.op("Shape", wide, start=2), axis=0),
    )
    made = b.op("MatMul", tokens, b.op("Transpose", rows, perm=[1, 0]))
    sizes = b.op("Slice", shape, b.numbers(0), b.numbers(2))
    made = b.op("Reshape", made, b.op("Concat", b.numbers(-1), sizes, axis=0))
    return made if bias is None else b.op("Add", made, floats(b, bias))


def routed(
    b: Replacement, logits: ir.Value, shares: ir.Value | None, *, normalized: bool
) -> ir.Value:
    """How much each expert counts for each token, 0 for most: [tokens, experts]."""
    top = b.ops("TopK", logits, b.numbers(b.positive("k", 1)), outputs=2, axis=-1)
    if shares is None:
        weights = b.op("Softmax", top[0], axis=-1)
    else:
        weights = b.op("GatherElements", shares, top[1], axis=-1)
        if normalized:
            total = b.op("ReduceSum", weights, b.numbers(-1))
            weights = b.op("Div", weights, total)
    empty = b.op("Expand", b.constant_float(0.0), b.op("Shape", logits))
    return b.op("ScatterElements", empty, top[1], weights, axis=1)


def activated(b: Replacement, x: ir.Value, gated: ir.Value | None) -> ir.Value:
    """gated: what is multiplied with it, a product of its own."""
    name = b.string("activation_type", "relu")
    if name == "swiglu":
        return swiglu(b, x, gated)
    b.ignore("activation_alpha", "activation_beta", "swiglu_fusion", "swiglu_limit")
    match name:
        case "relu":
            made = b.op("Relu", x)
        case "gelu":
            made = b.op("Gelu", x, approximate="tanh")
        case "silu":
            made = b.op("Mul", x, b.op("Sigmoid", x))
        case "identity":
            made = x
        case _:
            raise Refused(f"its attribute activation_type = {name} is not supported")
    return made if gated is None else b.op("Mul", made, gated)


def swiglu(b: Replacement, x: ir.Value, gated: ir.Value | None) -> ir.Value:
    """g * sigmoid(alpha * g) * (l + beta), both held to a limit."""
    fused, axis = b.int("swiglu_fusion", 0), b.numbers(2)
    if gated is not None:
        gate, line = x, gated
    elif fused == INTERLEAVED:
        gate, line = (
            b.op("Slice", x, b.numbers(at), b.numbers(2**62), axis, b.numbers(2))
            for at in (0, 1)
        )
    else:
        gate, line = b.ops("Split", x, outputs=2, axis=2, num_outputs=2)
    limit = b.attribute("swiglu_limit", ir.AttributeType.FLOAT)
    if limit is not None and np.isfinite(limit):
        low, high = b.constant_float(-limit), b.constant_float(limit)
        gate, line = b.op("Min", gate, high), b.op("Clip", line, low, high)
    if (alpha := b.float("activation_alpha", 1.0)) == 1.0:
        opened = b.op("Sigmoid", gate)
    else:
        opened = b.op("Sigmoid", b.op("Mul", gate, b.constant_float(alpha)))
    if beta := b.float("activation_beta", 0.0):
        line = b.op("Add", line, b.constant_float(beta))
    return b.op("Mul", b.op("Mul", gate, opened), line)


OPERATORS = {"MoE": mixture, "QMoE": quantized_mixture}
