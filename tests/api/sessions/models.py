"""A small decoder with past keys and values, as exporters write it."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator

Array = np.ndarray
WORDS, WIDTH, HEADS, GROUPS, HEAD = 50, 32, 4, 2, 8
POSITIONS = 70  # no token stands behind them

HEAD_TEXT = '<ir_version: 8, opset_import: ["" : 17]>\n'
DECODER = """
g (int64[batch, sequence] input_ids, float[batch, total] attention_mask,
   float[batch, 2, past, 8] past_key_values_0_key,
   float[batch, 2, past, 8] past_key_values_0_value)
    => (float[batch, sequence, 50] logits, float[batch, 2, total, 8] present_0_key,
        float[batch, 2, total, 8] present_0_value)
{
    zero = Constant<value = int64 {0}>()
    one = Constant<value = int64 {1}>()
    first = Constant<value = int64[1] {0}>()
    second = Constant<value = int64[1] {1}>()
    third = Constant<value = int64[1] {2}>()
    ids_shape = Shape(input_ids)
    batch1 = Gather<axis = 0>(ids_shape, first)
    new1 = Gather<axis = 0>(ids_shape, second)
    new = Squeeze(new1, first)
    past_shape = Shape(past_key_values_0_key)
    past1 = Gather<axis = 0>(past_shape, third)
    past = Squeeze(past1, first)
    all = Add(past, new)
    all1 = Add(past1, new1)
    rows = Range(past, all, one)
    columns = Range(zero, all, one)
    rows2 = Unsqueeze(rows, second)
    later = Greater(columns, rows2)
    nothing = Constant<value = float {0}>()
    much = Constant<value = float {-1000}>()
    causal = Where(later, much, nothing)
    mask_axes = Constant<value = int64[2] {1, 2}>()
    given_mask = Unsqueeze(attention_mask, mask_axes)
    mask = Add(causal, given_mask)
    named = Gather(table, input_ids)
    places = Gather(positions, rows)
    x = Add(named, places)
    h = Constant<value = int64[2] {4, 8}>()
    g = Constant<value = int64[2] {2, 8}>()
    as_heads = Concat<axis = 0>(batch1, new1, h)
    as_groups = Concat<axis = 0>(batch1, new1, g)
    q0 = MatMul(x, wq)
    q1 = Reshape(q0, as_heads)
    q = Transpose<perm = [0, 2, 1, 3]>(q1)
    k0 = MatMul(x, wk)
    k1 = Reshape(k0, as_groups)
    k2 = Transpose<perm = [0, 2, 1, 3]>(k1)
    present_0_key = Concat<axis = 2>(past_key_values_0_key, k2)
    v0 = MatMul(x, wv)
    v1 = Reshape(v0, as_groups)
    v2 = Transpose<perm = [0, 2, 1, 3]>(v1)
    present_0_value = Concat<axis = -2>(past_key_values_0_value, v2)
    two = Constant<value = int64[1] {2}>()
    eight = Constant<value = int64[1] {8}>()
    four = Constant<value = int64[1] {4}>()
    wide = Concat<axis = 0>(batch1, two, two, all1, eight)
    whole = Concat<axis = 0>(batch1, four, all1, eight)
    k3 = Unsqueeze(present_0_key, third)
    k4 = Expand(k3, wide)
    k5 = Reshape(k4, whole)
    k = Transpose<perm = [0, 1, 3, 2]>(k5)
    v3 = Unsqueeze(present_0_value, third)
    v4 = Expand(v3, wide)
    v = Reshape(v4, whole)
    qk = MatMul(q, k)
    scale = Constant<value = float {0.35}>()
    scaled = Mul(qk, scale)
    masked = Add(scaled, mask)
    p = Softmax<axis = -1>(masked)
    o0 = MatMul(p, v)
    o1 = Transpose<perm = [0, 2, 1, 3]>(o0)
    thirty_two = Constant<value = int64[1] {32}>()
    joined = Concat<axis = 0>(batch1, new1, thirty_two)
    o2 = Reshape(o1, joined)
    o3 = MatMul(o2, wo)
    y = Add(o3, x)
    logits = MatMul(y, head)
}
"""
SHAPES = {
    "table": (WORDS, WIDTH),
    "positions": (POSITIONS, WIDTH),
    "wq": (WIDTH, WIDTH),
    "wk": (WIDTH, GROUPS * HEAD),
    "wv": (WIDTH, GROUPS * HEAD),
    "wo": (WIDTH, WIDTH),
    "head": (WIDTH, WORDS),
}


def decoder(text: str = DECODER, total: str = "past + sequence") -> onnx.ModelProto:
    """total: how the dimension of all tokens is called."""
    model = parser.parse_model(HEAD_TEXT + text)
    for x in (*model.graph.input, *model.graph.output):
        for d in x.type.tensor_type.shape.dim:
            if d.dim_param == "total":
                d.dim_param = total
    random = np.random.default_rng(5)
    for name, shape in SHAPES.items():
        numbers = (random.standard_normal(shape) / 3).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(numbers, name))
    return model


def whole(ids: Array, mask: Array) -> dict[str, Array]:
    """Logits, keys and values of a text at once, by ONNX's reference."""
    model = decoder()
    none = np.zeros((len(ids), GROUPS, 0, HEAD), np.float32)
    names = ("past_key_values_0_key", "past_key_values_0_value")
    given = {"input_ids": ids, "attention_mask": mask, **dict.fromkeys(names, none)}
    made = ReferenceEvaluator(model).run(None, given)
    return {x.name: y for x, y in zip(model.graph.output, made, strict=True)}  # type: ignore[arg-type] - a list
