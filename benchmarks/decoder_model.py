"""A model of GPT-2's shape with seeded weights, and with past keys and values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from string import Template

import numpy as np
import onnx
from onnx import numpy_helper, parser

HEADER = '<ir_version: 9, opset_import: ["" : 20]>\n'
BEGIN = """
    zero = Constant<value = int64 {0}>()
    one = Constant<value = int64 {1}>()
    first = Constant<value = int64[1] {0}>()
    second = Constant<value = int64[1] {1}>()
    before = Shape<start = 2, end = 3>(past_0_key)
    new = Shape<start = 1, end = 2>(input_ids)
    past = Squeeze(before, first)
    count = Squeeze(new, first)
    all = Add(past, count)
    rows = Range(past, all, one)
    columns = Range(zero, all, one)
    below = Unsqueeze(rows, second)
    later = Greater(columns, below)
    none = Constant<value = float {0}>()
    much = Constant<value = float {-10000}>()
    mask = Where(later, much, none)
    scale = Constant<value = float {$scale}>()
    apart = Constant<value = int64[4] {0, 0, $heads, $head}>()
    joined = Constant<value = int64[3] {0, 0, $width}>()
    words = Gather(table, input_ids)
    places = Gather(positions, rows)
    x_0 = Add(words, places)
"""
LAYER = """
    a_$i = LayerNormalization<axis = -1>(x_$i, ones, zeros)
    b_$i = MatMul(a_$i, qkv_$i)
    c_$i = Add(b_$i, qkv_bias_$i)
    q0_$i, k0_$i, v0_$i = Split<axis = 2, num_outputs = 3>(c_$i)
    q1_$i = Reshape(q0_$i, apart)
    q_$i = Transpose<perm = [0, 2, 1, 3]>(q1_$i)
    k1_$i = Reshape(k0_$i, apart)
    k2_$i = Transpose<perm = [0, 2, 1, 3]>(k1_$i)
    present_${i}_key = Concat<axis = 2>(past_${i}_key, k2_$i)
    v1_$i = Reshape(v0_$i, apart)
    v2_$i = Transpose<perm = [0, 2, 1, 3]>(v1_$i)
    present_${i}_value = Concat<axis = 2>(past_${i}_value, v2_$i)
    kt_$i = Transpose<perm = [0, 1, 3, 2]>(present_${i}_key)
    s_$i = MatMul(q_$i, kt_$i)
    t_$i = Mul(s_$i, scale)
    u_$i = Add(t_$i, mask)
    p_$i = Softmax(u_$i)
    o_$i = MatMul(p_$i, present_${i}_value)
    o1_$i = Transpose<perm = [0, 2, 1, 3]>(o_$i)
    o2_$i = Reshape(o1_$i, joined)
    o3_$i = MatMul(o2_$i, out_$i)
    o4_$i = Add(o3_$i, out_bias_$i)
    y_$i = Add(o4_$i, x_$i)
    d_$i = LayerNormalization<axis = -1>(y_$i, ones, zeros)
    e_$i = MatMul(d_$i, up_$i)
    f_$i = Add(e_$i, up_bias_$i)
    g_$i = Gelu<approximate = "tanh">(f_$i)
    h_$i = MatMul(g_$i, down_$i)
    i_$i = Add(h_$i, down_bias_$i)
    x_${next} = Add(i_$i, y_$i)
"""
END = """
    last = LayerNormalization<axis = -1>(x_$layers, ones, zeros)
    logits = MatMul(last, head)
"""


@dataclass(frozen=True)
class Decoder:
    """GPT-2 of 124 million weights.  The table of words is the last product's, too."""

    layers: int = 12
    heads: int = 12
    width: int = 768
    words: int = 50257
    positions: int = 1024

    @property
    def matrices(self) -> dict[str, tuple[int, int]]:
        """The weights of a layer's products."""
        w = self.width
        return {"qkv": (w, 3 * w), "out": (w, w), "up": (w, 4 * w), "down": (4 * w, w)}

    @property
    def weight_bytes(self) -> int:
        """What a token reads: all but the tables, of which it reads a row each."""
        layer = sum(a * b + b for a, b in self.matrices.values())
        return 4 * (self.layers * layer + self.width * self.words)

    def cache_bytes(self, length: int) -> int:
        """Keys and values of so many tokens."""
        return 4 * 2 * self.layers * self.width * length

    def write(self, path: Path) -> Path:
        """The model, its weights in a file beside it."""
        caches = [
            f"{i}_{word}" for i in range(self.layers) for word in ("key", "value")
        ]
        head = self.width // self.heads
        axes = f"{self.heads}, {{}}, {head}"
        given = [f"float[batch, {axes.format('past')}] past_{c}" for c in caches]
        made = [f"float[batch, {axes.format('total')}] present_{c}" for c in caches]
        sizes = {"heads": self.heads, "head": head, "width": self.width}
        nodes = Template(BEGIN).substitute(sizes, scale=head**-0.5)
        for i in range(self.layers):
            nodes += Template(LAYER).substitute(i=i, next=i + 1)
        nodes += Template(END).substitute(layers=self.layers)
        model = parser.parse_model(
            f"{HEADER}g (int64[batch, new] input_ids, {', '.join(given)}) =>"
            f" (float[batch, new, {self.words}] logits, {', '.join(made)}) {{{nodes}}}"
        )
        model.graph.initializer.extend(self.weights())
        onnx.save(model, path, save_as_external_data=True, location=f"{path.name}.data")
        return path

    def weights(self) -> list[onnx.TensorProto]:
        """Seeded; as large as keeps numbers about 1."""
        random, made = np.random.default_rng(0), dict[str, np.ndarray]()
        w = self.width
        table = random.standard_normal((self.words, w), np.float32) / np.float32(4)
        made |= {"table": table, "head": np.ascontiguousarray(table.T) / np.float32(8)}
        made["positions"] = random.standard_normal((self.positions, w), np.float32) / 8
        made |= {"ones": np.ones(w, np.float32), "zeros": np.zeros(w, np.float32)}
        for i in range(self.layers):
            for name, (rows, columns) in self.matrices.items():
                drawn = random.standard_normal((rows, columns), np.float32)
                made[f"{name}_{i}"] = drawn / np.float32(rows**0.5)
                made[f"{name}_bias_{i}"] = np.full(columns, 0.01, np.float32)
        return [numpy_helper.from_array(a, name) for name, a in made.items()]


TINY = Decoder(layers=2, heads=3, width=48, words=101, positions=128)
