"""Attention whose scores are of bytes, as quantizers write it: a table stands between.

Scores are whole, scales are powers of two: all but the softmax is exact.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import nanoloom
from nanoloom.cache import Cache

SIZES = ["2x3x12x12x16x16", "1x1x3x5x4x7"]  # of both the first: all rows in one tile
SEEDS = range(4)
EPS = 2.0**-24
CODE = """
<ir_version: 10, opset_import: ["" : 21]>
attention (float[{b}, {h}, {m}, {d}] q, float[{b}, {h}, {d}, {n}] k,
           float[{b}, {h}, {n}, {e}] v) => (float[{b}, {h}, {m}, {e}] y)
<float coarse = {{1.0}}, float fine = {{0.0625}}, float factor = {{0.0625}},
 int8 zero = {{-12}}, int8 none = {{3}}>
{{
  s = MatMul(q, k)
  s1 = QuantizeLinear(s, coarse, zero)
  s2 = DequantizeLinear(s1, coarse, zero)
  s3 = Mul(s2, factor)
  s4 = QuantizeLinear(s3, fine, none)
  s5 = DequantizeLinear(s4, fine, none)
  p = Softmax(s5)
  y = MatMul(p, v)
}}
"""


def sizes(seed: int) -> str:
    draw = random.Random(seed)
    small = [draw.randint(1, 3) for _ in range(2)]
    return "x".join(map(str, [*small, *(draw.randint(1, 40) for _ in range(4))]))


@pytest.mark.parametrize("words", [*SIZES, *map(sizes, SEEDS)])
def test_numbers(words: str, tmp_path: Path) -> None:
    b, h, m, n, d, e = map(int, words.split("x"))
    model = parser.parse_model(CODE.format(b=b, h=h, m=m, n=n, d=d, e=e))
    random = np.random.default_rng(m * n * d)
    q, k = (
        random.integers(-3, 4, shape).astype(np.float32)
        for shape in ((b, h, m, d), (b, h, d, n))
    )
    v = random.standard_normal((b, h, n, e), np.float32)
    scores = np.clip(np.rint(q @ k) - 12, -128, 127) + 12
    scores = (np.clip(scores + 3, -128, 127) - 3) * 0.0625
    powers = np.exp(scores - scores.max(-1, keepdims=True), dtype=np.float64)
    shares = powers / powers.sum(-1, keepdims=True)
    wanted = shares @ v.astype(np.float64)
    (reference,) = ReferenceEvaluator(model).run(None, {"q": q, "k": k, "v": v})
    program = nanoloom.compile(model, cache=Cache(tmp_path))
    got = program.run({"q": q, "k": k, "v": v})["y"]
    # Powers and their sum to a few units, a product and its sum of n numbers.
    bound = (2 * n + 16) * EPS * (shares @ abs(v.astype(np.float64)))
    assert (abs(reference - wanted) <= bound).all()
    assert (abs(got - wanted) <= bound).all()
    wrong = shares[..., ::-1] @ v.astype(np.float64)
    assert n == 1 or (abs(wrong - wanted) > bound).any()
