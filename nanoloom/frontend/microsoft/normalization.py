"""Sums that are normalized: layers of transformers, with what stands in front."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.microsoft.replacement import Refused, Replacement

Outputs = Sequence[ir.Value | None]
Pair = tuple[ir.Value, ir.Value]
Tables = tuple[ir.Value, ir.Value, ir.Value | None, ir.Value, ir.Value]
EPSILON = 1e-12  # the default of what ONNX Runtime fuses


def skip_layer_normalization(b: Replacement) -> Outputs:
    """LayerNormalization(input + skip + bias); the sum is an output, too."""
    total = with_skip(b, b.optional(4))
    gamma, beta, epsilon = b.input(2), b.optional(3), b.float("epsilon", EPSILON)
    count = 3 if b.wants(1) or b.wants(2) else 1
    made = b.ops(
        "LayerNormalization", total, gamma, beta, outputs=count, epsilon=epsilon
    )
    return [*made, *[None] * (3 - count), total]


def skip_simplified_layer_normalization(b: Replacement) -> Outputs:
    total = with_skip(b, b.optional(3))
    epsilon = b.float("epsilon", EPSILON)
    return [root_mean_square(b, total, b.input(2), epsilon, -1), None, None, total]


def simplified_layer_normalization(b: Replacement) -> Outputs:
    x, axis, epsilon = b.input(0), b.int("axis", -1), b.float("epsilon", 1e-5)
    kind = b.int("stash_type", 1)
    if kind != 1 and b.dtype(x) != kind:
        raise Refused(f"its attribute stash_type = {kind} is not supported")
    return [root_mean_square(b, x, b.input(1), epsilon, axis)]


def root_mean_square(
    b: Replacement, x: ir.Value, scale: ir.Value, epsilon: float, axis: int
) -> ir.Value:
    return b.op("RMSNormalization", x, scale, epsilon=epsilon, axis=axis)


def with_skip(b: Replacement, bias: ir.Value | None) -> ir.Value:
    total = b.op("Add", b.input(0), b.input(1))
    return total if bias is None else b.op("Add", total, bias)


def embed_layer_normalization(b: Replacement) -> Outputs:
    """LayerNormalization of the rows of up to three tables, added up."""
    kinds = b.optional(4)
    tables = b.input(2), b.input(3), kinds, b.input(5), b.input(6)
    made, total = embedded(b, tables, b.optional(8))
    b.ignore("mask_index_type")  # whether there is the second output: seen by its name
    return [made, mask_lengths(b, b.input(0), b.optional(7)), total]


def quantized_embed_layer_normalization(b: Replacement) -> Outputs:
    """The same of quantized tables, each with a scale and a zero point of its own."""
    tables = [
        quantized_table(b, index, 8 + place, 13 + place)
        for place, index in enumerate(range(2, 7))
    ]
    words, positions, kinds, gamma, beta = tables
    if words is None or positions is None or gamma is None or beta is None:
        raise Refused("one of its tables is missing")
    made, _ = embedded(b, (words, positions, kinds, gamma, beta), None)
    return [made, mask_lengths(b, b.input(0), b.optional(7))]


def quantized_table(
    b: Replacement, index: int, scale: int, zero: int
) -> ir.Value | None:
    whole, step, start = b.optional(index), b.optional(scale), b.optional(zero)
    return whole and b.op("DequantizeLinear", whole, step, start)


def embedded(b: Replacement, tables: Tables, places: ir.Value | None) -> Pair:
    """The normalized sum, and the sum.  tables: of words, places and segments."""
    ids, segments = b.input(0), b.optional(1)
    words, positions, kinds, gamma, beta = tables
    total = b.op("Gather", words, ids)
    if places is None:
        length = b.op("Shape", ids, start=1, end=2)
        rows = b.op("Slice", positions, b.numbers(0), length, b.numbers(0))
    else:
        rows = b.op("Gather", positions, places)
    total = b.op("Add", total, rows)
    if segments is not None and kinds is not None:
        total = b.op("Add", total, b.op("Gather", kinds, segments))
    epsilon = b.float("epsilon", EPSILON)
    return b.op("LayerNormalization", total, gamma, beta, epsilon=epsilon), total


def mask_lengths(b: Replacement, ids: ir.Value, mask: ir.Value | None) -> ir.Value:
    """How many ones each row of a mask has; none without one."""
    one = b.constant(np.array(1, np.int32))
    if mask is None:
        zero, batch = b.constant(np.array(0, np.int32)), b.op("Shape", ids, end=1)
        return b.op("Expand", zero, batch)
    ones = b.op("Cast", b.op("Equal", mask, one), to=int(ir.DataType.INT32))
    return b.op("ReduceSum", ones, b.numbers(1), keepdims=0)


def group_norm(b: Replacement) -> Outputs:
    """GroupNormalization of images, channels last unless an attribute says other."""
    return [grouped(b, b.input(0), b.input(1), b.input(2))]


def skip_group_norm(b: Replacement) -> Outputs:
    x, skip, bias = b.input(0), b.input(3), b.optional(4)
    if b.rank(skip) == 2:
        axes = (1, 2) if b.int("channels_last", 1) else (2, 3)
        skip = b.op("Unsqueeze", skip, b.numbers(*axes))
    total = b.op("Add", x, skip)
    if bias is not None:
        if not b.int("channels_last", 1):
            bias = b.op("Unsqueeze", bias, b.numbers(1, 2))
        total = b.op("Add", total, bias)
    return [grouped(b, total, b.input(1), b.input(2)), total]


def grouped(b: Replacement, x: ir.Value, gamma: ir.Value, beta: ir.Value) -> ir.Value:
    last, kind = b.int("channels_last", 1), b.dtype(x)
    if last:
        x = b.op("Transpose", x, perm=[0, 3, 1, 2])
    if b.dtype(gamma) != kind:
        gamma, beta = (b.op("Cast", v, to=int(kind)) for v in (gamma, beta))
    groups, epsilon = b.int("groups"), b.float("epsilon", 1e-5)
    made = b.op(
        "GroupNormalization", x, gamma, beta, num_groups=groups, epsilon=epsilon
    )
    if b.int("activation"):
        made = b.op("Mul", made, b.op("Sigmoid", made))
    return b.op("Transpose", made, perm=[0, 2, 3, 1]) if last else made


OPERATORS = {
    "EmbedLayerNormalization": embed_layer_normalization,
    "GroupNorm": group_norm,
    "QEmbedLayerNormalization": quantized_embed_layer_normalization,
    "SimplifiedLayerNormalization": simplified_layer_normalization,
    "SkipGroupNorm": skip_group_norm,
    "SkipLayerNormalization": skip_layer_normalization,
    "SkipSimplifiedLayerNormalization": skip_simplified_layer_normalization,
}
