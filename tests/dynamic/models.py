"""Models with open dimensions, and their outputs as ONNX's reference has them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator

Array = np.ndarray
RANDOM = np.random.default_rng(11)
HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'

ATTENTION = """
g (float[batch, length, 32] x, int64[batch, length] words, float[batch, length] mask)
    => (float[batch, length, 32] y, float[batch, 32] pooled)
{
    shape = Shape(x)
    zero = Constant<value = int64[1] {0}>()
    one = Constant<value = int64[1] {1}>()
    minus = Constant<value = int64[1] {-1}>()
    batch1 = Gather<axis = 0>(shape, zero)
    length1 = Gather<axis = 0>(shape, one)
    rows = Slice(ids, zero, length1, zero)
    places = Gather(positions, rows)
    named = Gather(table, words)
    with_words = Add(x, named)
    given = Add(with_words, places)
    heads = Constant<value = int64[2] {4, 8}>()
    split = Concat<axis = 0>(batch1, length1, heads)
    all = Constant<value = int64[1] {32}>()
    whole = Concat<axis = 0>(batch1, length1, all)
    q0 = MatMul(given, wq)
    q1 = Reshape(q0, split)
    q = Transpose<perm = [0, 2, 1, 3]>(q1)
    k0 = MatMul(given, wk)
    k1 = Reshape(k0, split)
    k = Transpose<perm = [0, 2, 3, 1]>(k1)
    v0 = MatMul(given, wv)
    v1 = Reshape(v0, split)
    v = Transpose<perm = [0, 2, 1, 3]>(v1)
    qk = MatMul(q, k)
    scale = Constant<value = float {0.35}>()
    scaled = Mul(qk, scale)
    axes = Constant<value = int64[2] {1, 2}>()
    mask4 = Unsqueeze(mask, axes)
    masked = Add(scaled, mask4)
    p = Softmax<axis = -1>(masked)
    o0 = MatMul(p, v)
    o1 = Transpose<perm = [0, 2, 1, 3]>(o0)
    o2 = Reshape(o1, whole)
    o3 = MatMul(o2, wo)
    o4 = Add(o3, given)
    y = LayerNormalization<axis = -1, epsilon = 0.00001>(o4, scales, shifts)
    first = Gather<axis = 1>(y, zero)
    flat = Squeeze(first, one)
    pooled = Tanh(flat)
}
"""

ROWS = """
g (float[n, 37] x) => (float[n, 50] y, float[n] s)
{
    m = MatMul(x, w)
    a = Add(m, c)
    y = Relu(a)
    s = ReduceSum<keepdims = 0>(y, minus)
}
"""


def weights(names: Mapping[str, tuple[int, ...]]) -> list[onnx.TensorProto]:
    return [
        numpy_helper.from_array((RANDOM.standard_normal(s) / 4).astype(np.float32), n)
        for n, s in names.items()
    ]


def attention() -> onnx.ModelProto:
    model = parser.parse_model(HEAD + ATTENTION)
    square = dict.fromkeys(("wq", "wk", "wv", "wo"), (32, 32))
    tables = {"positions": (300, 32), "table": (50, 32), "scales": (32,)}
    model.graph.initializer.extend(weights({**square, **tables, "shifts": (32,)}))
    ids = numpy_helper.from_array(np.arange(300), "ids")
    model.graph.initializer.append(ids)
    return model


def rows(columns: int = 50) -> onnx.ModelProto:
    model = parser.parse_model(HEAD + ROWS.replace("50", str(columns)))
    model.graph.initializer.extend(weights({"w": (37, columns), "c": (columns,)}))
    model.graph.initializer.append(numpy_helper.from_array(np.array([1]), "minus"))
    return model


def inputs(model: onnx.ModelProto, dims: Mapping[str, int]) -> dict[str, Array]:
    """Seeded arrays: floats, indices up to 50."""
    random, made = np.random.default_rng(sum(dims.values())), {}
    for x in model.graph.input:
        kind = x.type.tensor_type
        shape = [d.dim_value or dims[d.dim_param] for d in kind.shape.dim]
        if kind.elem_type == onnx.TensorProto.INT64:
            made[x.name] = random.integers(-50, 50, shape)
        else:
            made[x.name] = random.standard_normal(shape).astype(np.float32)
    return made


def wanted(model: onnx.ModelProto, given: Mapping[str, Array]) -> dict[str, Array]:
    results = ReferenceEvaluator(model).run(None, dict(given))
    return {x.name: y for x, y in zip(model.graph.output, results, strict=True)}  # type: ignore[arg-type] - a list
