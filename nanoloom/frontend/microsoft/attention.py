"""Attention, as products of matrices around a softmax.

That is how exporters write it, and what the graph stage and the kernels fuse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.microsoft.attention_bias import causal_mask, padding_mask
from nanoloom.frontend.microsoft.quantized_products import integer_product
from nanoloom.frontend.microsoft.replacement import Refused, Replacement

Outputs = Sequence[ir.Value | None]
HEADS_FIRST = [
    0,
    2,
    1,
    3,
]  # [batch, length, heads, size] <-> [batch, heads, length, ...]


@dataclass
class Heads:
    """Queries, keys and values, each [batch, heads, length, size].

    added: to the scores, numbers given as such.
    """

    queries: ir.Value
    keys: ir.Value
    values: ir.Value
    added: list[ir.Value] = field(default_factory=list[ir.Value], kw_only=True)

    def scores(self, b: Replacement) -> ir.Value:
        turned = b.op("Transpose", self.keys, perm=[0, 1, 3, 2])
        made = b.op("MatMul", self.queries, turned)
        made = b.op("Mul", made, scale_of(b, self.queries))
        for each in self.added:
            made = b.op("Add", made, each)
        return made

    def result(self, b: Replacement, weights: ir.Value) -> ir.Value:
        """[batch, length, heads * size]."""
        return joined(b, b.op("MatMul", weights, self.values))


def attention(b: Replacement) -> Outputs:
    """Of one input, projected by one matrix of three parts."""
    projected = b.op("MatMul", b.input(0), b.input(1))
    bias = b.optional(2)
    if bias is not None:
        projected = b.op("Add", projected, bias)
    b.require("past_present_share_buffer", 0)
    return projected_attention(
        b, projected, b.optional(3), b.optional(4), b.optional(5)
    )


def quantized_attention(b: Replacement) -> Outputs:
    """The same, its input and its matrix in integers."""
    projected = integer_product(
        b, b.input(0), b.input(1), b.input(3), b.input(4), b.optional(6), b.optional(7)
    )
    projected = b.op("Add", projected, b.input(2))
    b.require("past_present_share_buffer", 0)
    return projected_attention(b, projected, b.optional(5), b.optional(8), None)


def projected_attention(
    b: Replacement,
    projected: ir.Value,
    mask: ir.Value | None,
    past: ir.Value | None,
    added: ir.Value | None,
) -> Outputs:
    count = b.positive("num_heads")
    b.require("do_rotary", 0)
    b.ignore("rotary_embedding_dim")  # of what is refused one line above
    sizes = b.ints("qkv_hidden_sizes")
    parts = b.ops(
        "Split", projected, b.numbers(*sizes) if sizes else None, outputs=3, axis=-1,
        num_outputs=None if sizes else 3,
    )  # fmt: skip
    queries, keys, values = (split(b, part, count) for part in parts)
    heads = Heads(queries, keys, values)
    if past is not None:
        keys, values = b.ops("Split", past, outputs=2, axis=0, num_outputs=2)
        heads.keys = behind(b, b.op("Squeeze", keys, b.numbers(0)), heads.keys)
        heads.values = behind(b, b.op("Squeeze", values, b.numbers(0)), heads.values)
    made = attended(b, heads, mask, added)
    return [made[0], stacked(b, heads) if b.wants(1) else None]


def stacked(b: Replacement, heads: Heads) -> ir.Value:
    pair = [b.op("Unsqueeze", x, b.numbers(0)) for x in (heads.keys, heads.values)]
    return b.op("Concat", *pair, axis=0)


def attended(
    b: Replacement, heads: Heads, mask: ir.Value | None, added: ir.Value | None
) -> tuple[ir.Value, ir.Value]:
    """The result, and how much each query takes of each key."""
    if mask is not None:
        heads.added.append(padding_mask(b, mask, heads.keys))
    if b.int("unidirectional", 0):
        heads.added.append(causal_mask(b, heads.queries, heads.keys))
    if added is not None:
        heads.added.append(added)
    b.ignore("mask_filter_value")  # of a mask, if there is one
    scores = heads.scores(b)
    return heads.result(b, b.op("Softmax", scores, axis=-1)), scores


def split(b: Replacement, x: ir.Value, heads: int) -> ir.Value:
    """[batch, length, heads * size] as [batch, heads, length, size]."""
    wide = b.op("Reshape", x, b.numbers(0, 0, heads, -1))
    return b.op("Transpose", wide, perm=HEADS_FIRST)


def joined(b: Replacement, x: ir.Value) -> ir.Value:
    """The inverse of `split`."""
    turned = b.op("Transpose", x, perm=HEADS_FIRST)
    return b.op("Reshape", turned, b.numbers(0, 0, -1))


def behind(b: Replacement, past: ir.Value, new: ir.Value) -> ir.Value:
    return b.op("Concat", past, new, axis=2)


def scale_of(b: Replacement, queries: ir.Value) -> ir.Value:
    """What scores are multiplied by: 1 / sqrt(size), unless an attribute says other."""
    given = b.float("scale", 0.0)
    if given:
        return b.scalar(given, queries)
    size = b.extent(queries, -1)
    if size is not None:
        return b.scalar(1 / np.sqrt(size), queries)
    kind = int(b.dtype(queries))
    known = b.op("Cast", b.op("Shape", queries, start=-1), to=int(ir.DataType.FLOAT))
    return b.op("Cast", b.op("Reciprocal", b.op("Sqrt", known)), to=kind)


# ---- queries, keys and values by themselves


def multi_head_attention(b: Replacement) -> Outputs:
    heads = given_heads(b, b.optional(3))
    past_keys, past_values = b.optional(6), b.optional(7)
    return finished(b, heads, b.optional(4), b.optional(5), past_keys, past_values)


def decoder_attention(b: Replacement) -> Outputs:
    """The same, of one query; its inputs come in another order."""
    b.require("past_present_share_buffer", 0)
    b.ignore("output_qk")  # the output is asked for by its name, too
    heads = given_heads(b, b.optional(10))
    mask, added, keys, values = (b.optional(index) for index in (3, 4, 5, 6))
    return finished(b, heads, mask, added, keys, values)


def finished(
    b: Replacement,
    heads: Heads,
    mask: ir.Value | None,
    added: ir.Value | None,
    past_keys: ir.Value | None,
    past_values: ir.Value | None,
) -> Outputs:
    if (past_keys is None) != (past_values is None):
        raise Refused("it has only one of the past keys and values")
    if past_keys is not None and past_values is not None:
        heads.keys = behind(b, past_keys, heads.keys)
        heads.values = behind(b, past_values, heads.values)
    made, scores = attended(b, heads, mask, added)
    return [made, heads.keys, heads.values, scores]


def given_heads(b: Replacement, bias: ir.Value | None) -> Heads:
    """Queries, keys and values from what the first three inputs hold."""
    count, query = b.positive("num_heads"), b.input(0)
    keys, values = b.optional(1), b.optional(2)
    if b.rank(query) == 5:
        packed, keys, values = unpacked(b, query, 3)
        if bias is not None:
            raise Refused(f"its input {bias.name} belongs to packed queries")
        return Heads(packed, keys, values)
    if keys is None:
        raise Refused("its input 1, the keys, is missing")
    is_packed, is_split = b.rank(keys) == 5, b.rank(keys) == 4
    if bias is not None:
        return biased_heads(b, count, bias, is_split=is_split)
    queries = split(b, query, count)
    if is_packed:
        keys, values = unpacked(b, keys, 2)
        return Heads(queries, keys, values)
    if values is None:
        raise Refused("its input 2, the values, is missing")
    if is_split:
        return Heads(queries, keys, values)
    return Heads(queries, split(b, keys, count), split(b, values, count))


def biased_heads(
    b: Replacement, count: int, bias: ir.Value, *, is_split: bool
) -> Heads:
    """The bias's three parts; keys and values that are split already have theirs."""
    query, keys, values = b.input(0), b.input(1), b.input(2)
    width = b.op("Shape", query, start=2)
    zero, last = b.numbers(0), b.numbers(np.iinfo(np.int64).max)
    first = b.op("Slice", bias, zero, width, zero)
    queries = split(b, b.op("Add", query, first), count)
    if is_split:
        return Heads(queries, keys, values)
    middle = b.op("Add", width, width)
    second = b.op("Slice", bias, width, middle, zero)
    third = b.op("Slice", bias, middle, last, zero)
    return Heads(
        queries,
        split(b, b.op("Add", keys, second), count),
        split(b, b.op("Add", values, third), count),
    )


def unpacked(b: Replacement, x: ir.Value, count: int) -> list[ir.Value]:
    """[batch, length, heads, count, size] as so many [batch, heads, length, size]."""
    parts = b.ops("Split", x, outputs=count, axis=3, num_outputs=count)
    flat = [b.op("Squeeze", part, b.numbers(3)) for part in parts]
    return [b.op("Transpose", part, perm=HEADS_FIRST) for part in flat]


OPERATORS = {
    "Attention": attention,
    "DecoderMaskedMultiHeadAttention": decoder_attention,
    "MultiHeadAttention": multi_head_attention,
    "QAttention": quantized_attention,
}
