"""Attention whose bias has its axes in any order: tables of relative positions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx import parser

import nanoloom
from tests.vector.kernel_harness import shared_cache

EPS = float(np.finfo(np.float32).eps)
ORDERS = list(itertools.permutations(range(3)))
CODE = """
<ir_version: 8, opset_import: ["": 18]>
attention (float[2, {h}, {m}, {d}] q, float[2, {h}, {d}, {n}] k,
           float[2, {h}, {n}, {d}] v, float[{sizes}] bias) => (float[a, b, c, d] y) {{
  s = MatMul(q, k)
  b1 = Transpose<perm = [{perm}]>(bias)
  s1 = Add(s, b1)
  p = Softmax(s1)
  y = MatMul(p, v)
}}
"""


@pytest.mark.parametrize("seed", range(len(ORDERS)))
def test_numbers(seed: int) -> None:
    random = np.random.default_rng(seed)
    h, m, n, d = (int(x) for x in random.integers((2, 5, 5, 8), (5, 14, 14, 17)))
    perm = ORDERS[seed]
    sizes = [(h, m, n)[perm.index(axis)] for axis in range(3)]
    words = {"sizes": ", ".join(map(str, sizes)), "perm": ", ".join(map(str, perm))}
    model = parser.parse_model(CODE.format(h=h, m=m, n=n, d=d, **words))
    q, k, bias = (
        random.integers(-2, 3, shape).astype(np.float32)
        for shape in ((2, h, m, d), (2, h, d, n), tuple(sizes))
    )
    v = random.standard_normal((2, h, n, d), np.float32)
    scores = (q @ k + bias.transpose(perm)).astype(np.float64)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    shares = powers / powers.sum(-1, keepdims=True)
    program = nanoloom.compile(model, cache=shared_cache())
    got = program.run({"q": q, "k": k, "v": v, "bias": bias})["y"]
    # Powers and their sum to a few units, a product and its sum of n numbers.
    bound = (2 * n + 16) * EPS * (shares @ abs(v.astype(np.float64)))
    assert (abs(got - shares @ v) <= bound).all()
    assert (abs(got - shares[..., ::-1] @ v) > bound).any()
