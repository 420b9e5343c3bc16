"""Small float models, with weights and samples from a seed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import numpy_helper, parser

Array = np.ndarray
HEADER = '<ir_version: 8, opset_import: ["" : {}]>'

CONV_NET = """
g (float[N, 3, 9, 9] x) => (float[N, 5] y) <float zero = {0.0}, float six = {6.0}> {
  [first] a = Conv<pads = [1, 1, 1, 1]>(x, w1)
  [norm] n = BatchNormalization(a, scale, shift, mean, variance)
  [relu] r = Relu(n)
  [second] b = Conv<pads = [1, 1, 1, 1], group = 8>(r, w2, b2)
  [limit] c = Clip(b, zero, six)
  [third] d = Conv(c, w3)
  [sum] e = Add(d, r)
  [pool] p = GlobalAveragePool(e)
  [flat] f = Flatten(p)
  [last] z = MatMul(f, w4)
  [bias] y = Add(z, b4)
}
"""
CONV_SHAPES = {
    "w1": (8, 3, 3, 3),
    "scale": (8,),
    "shift": (8,),
    "mean": (8,),
    "variance": (8,),
    "w2": (8, 1, 3, 3),
    "b2": (8,),
    "w3": (8, 8, 1, 1),
    "w4": (8, 5),
    "b4": (5,),
}
BLOCK = """
g (float[N, L, 32] x) => (float[N, L, 32] y)
<float[32] gain, float[32] shift, int64[4] apart = {0, 0, 2, 16},
 int64[3] back = {0, 0, 32}, float root = {0.25}> {
  [norm] n = LayerNormalization(x, gain, shift)
  [query] q0 = MatMul(n, wq)
  [key] k0 = MatMul(n, wk)
  [value] v0 = MatMul(n, wv)
  q1 = Reshape(q0, apart)  k1 = Reshape(k0, apart)  v1 = Reshape(v0, apart)
  q = Transpose<perm = [0, 2, 1, 3]>(q1)
  k = Transpose<perm = [0, 2, 3, 1]>(k1)
  v = Transpose<perm = [0, 2, 1, 3]>(v1)
  [scores] s0 = MatMul(q, k)
  s1 = Mul(s0, root)
  [softmax] s = Softmax(s1)
  [context] c0 = MatMul(s, v)
  c1 = Transpose<perm = [0, 2, 1, 3]>(c0)
  c = Reshape(c1, back)
  [out] o = MatMul(c, wo)
  [residual] h = Add(o, x)
  [norm2] m = LayerNormalization(h, gain, shift)
  [up] u0 = MatMul(m, wu)
  u = Add(u0, bu)
  [gelu] e = Gelu(u)
  [down] d = MatMul(e, wd)
  [residual2] y = Add(d, h)
}
"""
BLOCK_SHAPES = {
    "gain": (32,),
    "shift": (32,),
    "wq": (32, 32),
    "wk": (32, 32),
    "wv": (32, 32),
    "wo": (32, 32),
    "wu": (32, 64),
    "bu": (64,),
    "wd": (64, 32),
}
# What `second` reads has one channel that is a thousand times the others.
OUTLIER = """
g (float[N, 16] x) => (float[N, 8] y) {
  [first] a = Gemm(x, w1, b1)
  [relu] r = Relu(a)
  [spread] s = Mul(r, factors)
  [second] b = Gemm(s, w2, b2)
  [relu2] t = Relu(b)
  [third] y = Gemm(t, w3, b3)
}
"""


def with_weights(
    text: str, weights: Mapping[str, Array], opset: int = 20
) -> onnx.ModelProto:
    """A model of its text, whose weights are these."""
    model = parser.parse_model(HEADER.format(opset) + text)
    held = {each.name for each in model.graph.initializer}
    for name, array in weights.items():
        if name not in held:
            model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def drawn(shapes: Mapping[str, tuple[int, ...]], seed: int = 0) -> dict[str, Array]:
    """Weights of layers that keep the size of their numbers."""
    rng = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for name, shape in shapes.items():
        fan = int(np.prod(shape[1:])) if len(shape) == 4 else shape[0]
        array = rng.standard_normal(shape) / np.sqrt(fan if len(shape) > 1 else 4)
        found[name] = array.astype(np.float32)
    for name in ("scale", "variance", "gain"):
        if name in found:
            found[name] = np.abs(found[name]) + np.float32(0.5)
    return found


def conv_net(seed: int = 0) -> onnx.ModelProto:
    return with_weights(CONV_NET, drawn(CONV_SHAPES, seed))


def block(seed: int = 0) -> onnx.ModelProto:
    text = BLOCK.replace("float[32] gain, float[32] shift, ", "")
    return with_weights(text, drawn(BLOCK_SHAPES, seed))


def outlier(seed: int = 0) -> onnx.ModelProto:
    shapes = {"w1": (16, 24), "b1": (24,), "w2": (24, 12), "b2": (12,)}
    weights = drawn(shapes | {"w3": (12, 8), "b3": (8,)}, seed)
    factors = np.ones(24, np.float32)
    factors[5] = 5000
    weights["b1"][5] = 3  # always on
    weights["w2"][5] /= 5000
    return with_weights(OUTLIER, weights | {"factors": factors})


def samples(
    shape: tuple[int, ...], count: int = 8, seed: int = 1, name: str = "x"
) -> list[dict[str, Array]]:
    rng = np.random.default_rng(seed)
    return [{name: rng.standard_normal(shape).astype(np.float32)} for _ in range(count)]
