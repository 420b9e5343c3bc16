"""GroupQueryAttention: heads that share keys and values, and a cache of both.

Row r of a batch has seqlens_k[r] + 1 tokens by now, the new ones at the end.  The cache
holds the others at its front, and what is behind them in a cache counts for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nanoloom.frontend.microsoft.attention import joined, scale_of, split
from nanoloom.frontend.microsoft.attention_bias import length, range_of
from nanoloom.frontend.microsoft.replacement import Refused, Replacement
from nanoloom.frontend.microsoft.rotary import places_from

TENSOR_SCATTER = 24  # the opset that it came with
INT64 = int(ir.DataType.INT64)


@dataclass
class Tokens:
    """Queries, keys and values of the new tokens, [batch, heads, length, size].

    before: how many tokens each row of the batch had without them, [batch].
    """

    queries: ir.Value
    keys: ir.Value
    values: ir.Value
    before: ir.Value


def group_query_attention(b: Replacement) -> Sequence[ir.Value | None]:
    refuse_others(b)
    heads, groups = b.positive("num_heads"), b.positive("kv_num_heads")
    if heads % groups:
        raise Refused(f"its {heads} heads do not share {groups} of keys evenly")
    tokens = rotated(b, new_tokens(b, heads, groups))
    keys = in_cache(b, b.optional(3), tokens.keys, tokens.before, output=1)
    values = in_cache(b, b.optional(4), tokens.values, tokens.before, output=2)
    every = [repeated(b, x, heads, groups) for x in (keys, values)]
    turned = b.op("Transpose", every[0], perm=[0, 1, 3, 2])
    scores = b.op("MatMul", tokens.queries, turned)
    scores = b.op("Mul", scores, scale_of(b, tokens.queries))
    if softcap := b.float("softcap", 0.0):
        cap = b.scalar(softcap, tokens.queries)
        scores = b.op("Mul", b.op("Tanh", b.op("Div", scores, cap)), cap)
    added = b.optional(10)
    if added is not None:
        scores = b.op("Add", scores, added)
    scores = b.op("Add", scores, visible(b, tokens, keys))
    made = joined(b, b.op("MatMul", softmax(b, scores), every[1]))
    return [made, keys, values]


def refuse_others(b: Replacement) -> None:
    """What another runtime's caches may hold, and what follows from other inputs."""
    for name in ("k_quant_type", "v_quant_type"):
        if (kind := b.string(name, "NONE")) != "NONE":
            raise Refused(f"its attribute {name} = {kind} is not supported")
    b.require("sliding_window_cache", 0)
    b.require("qk_output", 0)
    b.ignore("kv_cache_bit_width", "qk_norm_epsilon")  # of what is refused
    b.input(6)  # total_sequence_length: the largest of seqlens_k + 1


def new_tokens(b: Replacement, heads: int, groups: int) -> Tokens:
    query, keys, values = b.input(0), b.optional(1), b.optional(2)
    if keys is None or values is None:
        whole = split(b, query, heads + 2 * groups)
        counts = b.numbers(heads, groups, groups)
        queries, new_keys, new_values = b.ops("Split", whole, counts, outputs=3, axis=1)
    else:
        queries = split(b, query, heads)
        new_keys, new_values = (split(b, x, groups) for x in (keys, values))
    total = b.op("Cast", b.op("Reshape", b.input(5), b.numbers(-1)), to=INT64)
    others = b.op("Sub", total, b.op("Sub", length(b, queries), b.numbers(1)))
    before = b.op("Max", others, b.numbers(0))  # rows of a first call may be shorter
    if b.optional(3) is None:
        before = b.op("Expand", b.numbers(0), b.op("Shape", others))
    return Tokens(queries, new_keys, new_values, before)


def rotated(b: Replacement, tokens: Tokens) -> Tokens:
    """By their places, the first of which is the number of tokens before."""
    if not b.int("do_rotary", 0):
        b.ignore("rotary_interleaved")
        for index in (7, 8, 9):  # tables that nothing asks for
            b.optional(index)
        return tokens
    cosines, sines, places = b.input(7), b.input(8), b.optional(9)
    if places is None:
        first = b.op("Unsqueeze", tokens.before, b.numbers(1))
        steps = places_from(b, b.numbers(0), tokens.queries, axis=2)
        places = b.op("Add", steps, first)
    queries, keys = (
        b.op(
            "RotaryEmbedding", x, cosines, sines, places,
            interleaved=b.int("rotary_interleaved", 0),
            rotary_embedding_dim=rotated_part(b, cosines, x),
        )
        for x in (tokens.queries, tokens.keys)
    )  # fmt: skip
    return Tokens(queries, keys, tokens.values, tokens.before)


def rotated_part(b: Replacement, cosines: ir.Value, x: ir.Value) -> int | None:
    """How many numbers of a head are rotated; None for all of them."""
    half, size = b.extent(cosines, -1), b.extent(x, -1)
    if half is None:
        raise Refused(f"the width of its table {cosines.name} is not known before it")
    return None if size == 2 * half else 2 * half


def in_cache(
    b: Replacement, past: ir.Value | None, new: ir.Value, before: ir.Value, output: int
) -> ir.Value:
    """The cache with new tokens.

    A batch of one row has its cache full, unless input and output are one buffer.
    """
    if past is None:
        return new
    if not is_one_buffer(b, past, output):
        if b.extent(past, 0) == 1:
            return b.op("Concat", past, new, axis=2)
        past = b.op("Concat", past, new, axis=2)  # room; what it holds is overwritten
    return b.op("TensorScatter", past, new, before, axis=2, version=TENSOR_SCATTER)


def is_one_buffer(b: Replacement, past: ir.Value, output: int) -> bool:
    """Whether a cache is declared as long as what comes out."""
    outputs = b.node.outputs
    given = b.types.shape(outputs[output]) if output < len(outputs) else None
    taken = b.types.shape(past)
    if given is None or taken is None or len(given) != 4 or len(taken) != 4:
        return False
    return given[2] is not None and given[2] == taken[2]


def visible(b: Replacement, tokens: Tokens, keys: ir.Value) -> ir.Value:
    """0 for keys that a query may see, [batch, 1, queries, keys]."""
    first = b.op("Unsqueeze", tokens.before, b.numbers(1, 2, 3))
    steps = b.op(
        "Unsqueeze", range_of(b, length(b, tokens.queries), np.int64), b.numbers(1)
    )
    own, place = b.op("Add", steps, first), range_of(b, length(b, keys), np.int64)
    end = b.op("Add", first, length(b, tokens.queries))
    causal = b.int("causal", 1)
    seen = b.op("LessOrEqual", place, own) if causal else b.op("Less", place, end)
    window = b.int("local_window_size", -1)
    if window > 0:
        oldest = b.op("Sub", own, b.numbers(window))
        seen = b.op("And", seen, b.op("Greater", place, oldest))
    zero, none = (b.scalar(x, tokens.keys) for x in (0.0, -np.inf))
    return b.op("Where", seen, zero, none)


def softmax(b: Replacement, scores: ir.Value) -> ir.Value:
    """With one more score for each head, if there is one, that no value belongs to."""
    sink, smooth = b.optional(11), b.int("smooth_softmax", 0)
    if sink is None and smooth != 1:
        return b.op("Softmax", scores, axis=-1)
    column = b.scalar(0.0, scores) if sink is None else sink
    shape = (1, 1, 1, 1) if sink is None else (1, -1, 1, 1)
    wide = b.op("Concat", b.op("Shape", scores, end=3), b.numbers(1), axis=0)
    column = b.op("Expand", b.op("Reshape", column, b.numbers(*shape)), wide)
    made = b.op("Softmax", b.op("Concat", column, scores, axis=-1), axis=-1)
    last = b.numbers(np.iinfo(np.int64).max)
    return b.op("Slice", made, b.numbers(1), last, b.numbers(-1))


def repeated(b: Replacement, x: ir.Value, heads: int, groups: int) -> ir.Value:
    """[batch, groups, length, size] for every head."""
    if heads == groups:
        return x
    wide = b.op("Unsqueeze", x, b.numbers(2))
    wide = b.op("Expand", wide, b.numbers(1, 1, heads // groups, 1, 1))
    sizes = [b.op("Shape", x, end=1), b.numbers(heads), b.op("Shape", x, start=2)]
    return b.op("Reshape", wide, b.op("Concat", *sizes, axis=0))


OPERATORS = {"GroupQueryAttention": group_query_attention}
