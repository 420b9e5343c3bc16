"""Attention whose past is one matrix for each head, and convolutions in front of it."""

from __future__ import annotations

import onnx_ir as ir

from nanoloom.frontend.microsoft.gates import narrowed, widened
from nanoloom.frontend.microsoft.replacement import Refused, Replacement

RULES = ("linear", "gated", "delta", "gated_delta")
Outputs = list[ir.Value | None]


def linear_attention(b: Replacement) -> Outputs:
    """S = exp(g) S + k (x) beta (v - k S), o = scale q S, a Scan over tokens.

    S: [batch, heads, keys, values]; what a rule does not have is left out.
    """
    rule = b.string("update_rule", "gated_delta")
    if rule not in RULES:
        raise Refused(f"its attribute update_rule = {rule} is not supported")
    b.ignore("chunk_size")
    b.require("state_window", 0)
    heads, shared = b.positive("q_num_heads"), b.positive("kv_num_heads")
    if heads % shared:
        raise Refused(f"its {shared} heads of keys do not divide {heads} of queries")
    group = heads // shared
    query, past = b.input(0), b.optional(3)
    q = by_token(b, query, heads)
    k, v = (by_token(b, b.input(i), shared) for i in (1, 2))
    scale = b.float("scale", 0.0)
    width = b.extent(query, -1)
    if not scale:
        if width is None:
            reason = f"the extent of {query.name} is not known, and it has no scale"
            raise Refused(reason)
        scale = (width // heads) ** -0.5
    q = b.op("Mul", q, b.constant_float(scale))
    given = [q, k, v]
    if rule.startswith("gated"):
        decay = b.op("Exp", by_token(b, b.input(4), shared))
        given.append(decay)
    if rule.endswith("delta"):
        given.append(by_token(b, b.input(5), None))
    start = widened(b, past) if past is not None else empty_state(b, k, v)
    state, made = scanned(b, start, given, rule, group)
    rows = b.op("Transpose", made, perm=[1, 0, 2, 3])
    shape = b.op("Concat", b.op("Shape", query, end=2), b.numbers(-1), axis=0)
    result = narrowed(b, b.op("Reshape", rows, shape), query)
    return [result, narrowed(b, state, query if past is None else past)]


def by_token(b: Replacement, x: ir.Value, heads: int | None) -> ir.Value:
    """[tokens, batch, heads, size] of [batch, tokens, heads * size].

    heads: None for one number each.
    """
    rows = b.op("Transpose", widened(b, x), perm=[1, 0, 2])
    last = b.numbers(-1, 1) if heads is None else b.numbers(heads, -1)
    shape = b.op("Concat", b.op("Shape", rows, end=2), last, axis=0)
    return b.op("Reshape", rows, shape)


def empty_state(b: Replacement, k: ir.Value, v: ir.Value) -> ir.Value:
    sizes = b.op("Concat", b.op("Shape", k, start=1), b.op("Shape", v, start=3), axis=0)
    return b.op("Expand", b.constant_float(0.0), sizes)


def scanned(
    b: Replacement, start: ir.Value, given: list[ir.Value], rule: str, group: int
) -> tuple[ir.Value, ir.Value]:
    def step(state: ir.Value, q: ir.Value, k: ir.Value, v: ir.Value, *rest: ir.Value):
        keys = b.op("Unsqueeze", k, b.numbers(3))  # a column
        if rule.startswith("gated"):
            state = b.op("Mul", state, b.op("Unsqueeze", rest[0], b.numbers(3)))
        if rule.endswith("delta"):
            row = b.op("Unsqueeze", k, b.numbers(2))
            known = b.op("Squeeze", b.op("MatMul", row, state), b.numbers(2))
            v = b.op("Mul", b.op("Sub", v, known), rest[-1])
        added = b.op("Mul", keys, b.op("Unsqueeze", v, b.numbers(2)))
        state = b.op("Add", state, added)
        return state, attended(b, q, state, group)

    return b.scan(start, given, step)


def attended(b: Replacement, q: ir.Value, state: ir.Value, group: int) -> ir.Value:
    """q S of each head: [batch, heads, values].  group: queries of one matrix."""
    shape = b.op("Concat", b.op("Shape", state, end=2), b.numbers(group, -1), axis=0)
    made = b.op("MatMul", b.op("Reshape", q, shape), state)
    flat = b.op("Concat", b.op("Shape", q, end=2), b.numbers(-1), axis=0)
    return b.op("Reshape", made, flat)


def causal_convolution(b: Replacement) -> Outputs:
    """Of each channel alone, over this token and those before it.

    The last ones are handed on, to stand in front of what comes next.
    """
    for name, value in (("ndim", 1), ("channels_last", 0), ("state_window", 0)):
        b.require(name, value)
    x, weight, bias, past = b.input(0), b.input(1), b.optional(2), b.optional(3)
    channels, taps = b.extent(weight, 0), b.extent(weight, -1)
    if channels is None or taps is None:
        raise Refused(f"the shape of {weight.name} is not known")
    dilation = b.positive("dilation", 1)
    reach = (taps - 1) * dilation
    name = b.string("activation", "none")
    if name not in ("none", "silu", "swish"):
        raise Refused(f"its attribute activation = {name} is not supported")
    if past is None:
        zeros = b.op("Pad", x, b.numbers(0, 0, reach, 0, 0, 0))
    else:
        zeros = b.op("Concat", past, x, axis=-1)
    made = b.op(
        "Conv", zeros, weight, bias, group=channels, dilations=[dilation],
        kernel_shape=[taps],
    )  # fmt: skip
    if name != "none":
        made = b.op("Mul", made, b.op("Sigmoid", made))
    if not reach:
        empty = b.op("Slice", x, b.numbers(0), b.numbers(0), b.numbers(2))
        return [made, empty]
    state = b.op("Slice", zeros, b.numbers(-reach), b.numbers(2**62), b.numbers(2))
    return [made, state]


OPERATORS = {
    "CausalConvWithState": causal_convolution,
    "LinearAttention": linear_attention,
}
