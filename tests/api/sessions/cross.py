"""A small decoder that also attends to what an encoder made, as exporters write it.

Two models with the same weights: `first` takes the encoder's states, and gives keys and
values of both; `later` takes these, and gives those of the text.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper, parser

Array = np.ndarray
WORDS, WIDTH, HEADS, SIZE = 50, 32, 4, 8

LAYER = """
{
    batch = Shape<start = 0, end = 1>(input_ids)
    new = Shape<start = 1, end = 2>(input_ids)
    sizes = Constant<value = int64[2] {4, 8}>()
    heads = Concat<axis = 0>(batch, new, sizes)
    width = Constant<value = int64[1] {32}>()
    joined = Concat<axis = 0>(batch, new, width)
    scale = Constant<value = float {0.35}>()
    x = Gather(table, input_ids)
    q0 = MatMul(x, wq)
    q1 = Reshape(q0, heads)
    q = Transpose<perm = [0, 2, 1, 3]>(q1)
    k0 = MatMul(x, wk)
    k1 = Reshape(k0, heads)
    k2 = Transpose<perm = [0, 2, 1, 3]>(k1)
    v0 = MatMul(x, wv)
    v1 = Reshape(v0, heads)
    v2 = Transpose<perm = [0, 2, 1, 3]>(v1)
    CACHE
    kt = Transpose<perm = [0, 1, 3, 2]>(present_0_decoder_key)
    s0 = MatMul(q, kt)
    s1 = Mul(s0, scale)
    s2 = Add(s1, attention_mask)
    p0 = Softmax<axis = -1>(s2)
    o0 = MatMul(p0, present_0_decoder_value)
    o1 = Transpose<perm = [0, 2, 1, 3]>(o0)
    o2 = Reshape(o1, joined)
    y0 = Add(x, o2)
    cq0 = MatMul(y0, wcq)
    cq1 = Reshape(cq0, heads)
    cq = Transpose<perm = [0, 2, 1, 3]>(cq1)
    ckt = Transpose<perm = [0, 1, 3, 2]>(CROSS_key)
    c0 = MatMul(cq, ckt)
    c1 = Mul(c0, scale)
    axes = Constant<value = int64[2] {1, 2}>()
    other = Unsqueeze(encoder_attention_mask, axes)
    c2 = Add(c1, other)
    p1 = Softmax<axis = -1>(c2)
    r0 = MatMul(p1, CROSS_value)
    r1 = Transpose<perm = [0, 2, 1, 3]>(r0)
    r2 = Reshape(r1, joined)
    y1 = Add(y0, r2)
    logits = MatMul(y1, head)
}
"""
HEADER = '<ir_version: 8, opset_import: ["" : 17]>\n'
GIVEN = """(int64[batch, sequence] input_ids, float[sequence, TOTAL] attention_mask,
   float[batch, source] encoder_attention_mask, """
PAST = """float[batch, 4, past, 8] past_key_values_0_decoder_key,
   float[batch, 4, past, 8] past_key_values_0_decoder_value,
   float[batch, 4, source, 8] past_key_values_0_encoder_key,
   float[batch, 4, source, 8] past_key_values_0_encoder_value)"""
PRESENT = """(float[batch, sequence, 50] logits,
   float[batch, 4, total, 8] present_0_decoder_key,
   float[batch, 4, total, 8] present_0_decoder_value"""
KEYS = """present_0_decoder_key = Concat<axis = 2>(past_key_values_0_decoder_key, k2)
    present_0_decoder_value = Concat<axis = 2>(past_key_values_0_decoder_value, v2)"""
BOTH = """present_0_decoder_key = Identity(k2)
    present_0_decoder_value = Identity(v2)
    length = Shape<start = 1, end = 2>(encoder_hidden_states)
    pages = Concat<axis = 0>(batch, length, sizes)
    ck0 = MatMul(encoder_hidden_states, wck)
    ck1 = Reshape(ck0, pages)
    present_0_encoder_key = Transpose<perm = [0, 2, 1, 3]>(ck1)
    cv0 = MatMul(encoder_hidden_states, wcv)
    cv1 = Reshape(cv0, pages)
    present_0_encoder_value = Transpose<perm = [0, 2, 1, 3]>(cv1)"""


def weighed(text: str, total: str) -> onnx.ModelProto:
    model = parser.parse_model(HEADER + text.replace("TOTAL", "total"))
    for x in (*model.graph.input, *model.graph.output):
        for d in x.type.tensor_type.shape.dim:
            if d.dim_param == "total":
                d.dim_param = total
    random = np.random.default_rng(6)
    shapes = {"table": (WORDS, WIDTH), "head": (WIDTH, WORDS)}
    shapes |= dict.fromkeys(("wq", "wk", "wv", "wcq", "wck", "wcv"), (WIDTH, WIDTH))
    for name, shape in shapes.items():
        numbers = (random.standard_normal(shape) / 3).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(numbers, name))
    return model


def later() -> onnx.ModelProto:
    """Of the tokens behind others."""
    body = LAYER.replace("CACHE", KEYS).replace("CROSS", "past_key_values_0_encoder")
    return weighed(f"g {GIVEN}{PAST} => {PRESENT}) {body}", "past + sequence")


def first() -> onnx.ModelProto:
    """Of the first tokens, and of what an encoder made."""
    states = "float[batch, source, 32] encoder_hidden_states)"
    made = """, float[batch, 4, source, 8] present_0_encoder_key,
        float[batch, 4, source, 8] present_0_encoder_value)"""
    body = LAYER.replace("CACHE", BOTH).replace("CROSS", "present_0_encoder")
    return weighed(f"g {GIVEN}{states} => {PRESENT}{made} {body}", "sequence")


def causal(new: int, total: int) -> Array:
    """0 for tokens up to each new one, and much less for later ones."""
    places = np.arange(total - new, total)[:, None]
    return np.where(np.arange(total) > places, -1000, 0).astype(np.float32)
