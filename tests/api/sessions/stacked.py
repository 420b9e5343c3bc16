"""A decoder of two layers whose past keys and values are one tensor, or one a layer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import numpy_helper, parser

WIDTH, HEADS, HEAD, LAYERS = 12, 3, 4, 2
MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
g (float[batch, new, 12] x, {inputs}) => (float[batch, new, 12] y, {outputs})
{{
    i0 = Constant<value = int64 {{0}}>()
    i1 = Constant<value = int64 {{1}}>()
    at0 = Constant<value = int64[1] {{0}}>()
    at1 = Constant<value = int64[1] {{1}}>()
    at2 = Constant<value = int64[1] {{2}}>()
    at01 = Constant<value = int64[2] {{0, 1}}>()
    heads = Constant<value = int64[4] {{0, 0, 3, 4}}>()
    joined = Constant<value = int64[3] {{0, 0, 12}}>()
    {body}
}}
"""
LAYER = """
    k0_{n} = MatMul({x}, wk{n})
    k1_{n} = Reshape(k0_{n}, heads)
    k2_{n} = Transpose<perm = [0, 2, 1, 3]>(k1_{n})
    v0_{n} = MatMul({x}, wv{n})
    v1_{n} = Reshape(v0_{n}, heads)
    v2_{n} = Transpose<perm = [0, 2, 1, 3]>(v1_{n})
    {keys}
    q1_{n} = Reshape({x}, heads)
    q2_{n} = Transpose<perm = [0, 2, 1, 3]>(q1_{n})
    t_{n} = Transpose<perm = [0, 1, 3, 2]>(k_{n})
    s_{n} = MatMul(q2_{n}, t_{n})
    p_{n} = Softmax<axis = -1>(s_{n})
    o0_{n} = MatMul(p_{n}, v_{n})
    o1_{n} = Transpose<perm = [0, 2, 1, 3]>(o0_{n})
    o2_{n} = Reshape(o1_{n}, joined)
    {made} = Add({x}, o2_{n})
"""
ONE = "float[2, 2, batch, 3, {}, 4] {}"
Words = Callable[[int], str]


def gathered(n: int) -> str:
    """By an index for the layer, and one for keys or values; stacked again."""
    return f"""
    kv_{n} = Gather<axis = 0>(past, i{n})
    pk_{n} = Gather<axis = 0>(kv_{n}, i0)
    pv_{n} = Gather<axis = 0>(kv_{n}, i1)
    k_{n} = Concat<axis = -2>(pk_{n}, k2_{n})
    v_{n} = Concat<axis = -2>(pv_{n}, v2_{n})
    uk_{n} = Unsqueeze(k_{n}, at0)
    uv_{n} = Unsqueeze(v_{n}, at0)
    both_{n} = Concat<axis = 0>(uk_{n}, uv_{n})
    all_{n} = Unsqueeze(both_{n}, at0)"""


def sliced(n: int) -> str:
    """Slices and Splits that keep their axes of one element until the end."""
    return f"""
    layer_{n} = Slice(past, at{n}, at{n + 1}, at0)
    pk_{n}, pv_{n} = Split<axis = 1, num_outputs = 2>(layer_{n})
    k3_{n} = Unsqueeze(k2_{n}, at01)
    v3_{n} = Unsqueeze(v2_{n}, at01)
    k4_{n} = Concat<axis = 4>(pk_{n}, k3_{n})
    v4_{n} = Concat<axis = 4>(pv_{n}, v3_{n})
    k_{n} = Squeeze(k4_{n}, at01)
    v_{n} = Squeeze(v4_{n}, at01)
    all_{n} = Concat<axis = 1>(k4_{n}, v4_{n})"""


def turned(n: int) -> str:
    """Keys of a tensor for each layer, [2, batch, ...], turned as the product does."""
    return f"""
    pk_{n} = Gather<axis = 0>(past_{n}, i0)
    pv_{n} = Gather<axis = 0>(past_{n}, i1)
    pt_{n} = Transpose<perm = [0, 1, 3, 2]>(pk_{n})
    kt_{n} = Transpose<perm = [0, 1, 3, 2]>(k2_{n})
    k5_{n} = Concat<axis = -1>(pt_{n}, kt_{n})
    k_{n} = Transpose<perm = [0, 1, 3, 2]>(k5_{n})
    v_{n} = Concat<axis = -2>(pv_{n}, v2_{n})
    uk_{n} = Unsqueeze(k_{n}, at0)
    uv_{n} = Unsqueeze(v_{n}, at0)
    present_{n} = Concat<axis = 0>(uk_{n}, uv_{n})"""


FORMS: dict[str, Words] = {"gathered": gathered, "sliced": sliced, "turned": turned}


def decoder(
    form: str, end: str = "present = Concat<axis = 0>(all_0, all_1)"
) -> onnx.ModelProto:
    """end: what makes the output of all layers' parts."""
    layers = [
        LAYER.format(n=n, x=x, made=made, keys=FORMS[form](n))
        for n, (x, made) in enumerate([("x", "x1"), ("x1", "y")])
    ]
    if form == "turned":
        side = "float[2, batch, 3, {}, 4] {}_0, float[2, batch, 3, {}, 4] {}_1"
        inputs = side.format("past", "past", "past", "past")
        outputs, end = side.format("total", "present", "total", "present"), ""
    else:
        inputs, outputs = ONE.format("past", "past"), ONE.format("total", "present")
    body = "\n".join([*layers, end])
    model = parser.parse_model(MODEL.format(inputs=inputs, outputs=outputs, body=body))
    random = np.random.default_rng(11)
    for name in ("wk0", "wv0", "wk1", "wv1"):
        numbers = random.standard_normal((WIDTH, WIDTH)) / 4
        given = numpy_helper.from_array(numbers.astype(np.float32), name)
        model.graph.initializer.append(given)
    return model
