"""An If of run time in one program for all sizes."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest

import nanoloom
from tests.kernels.repeats.ended_loops import HEAD, reference
from tests.vector.kernel_harness import shared_cache

BRANCHES = {
    "elements": ("p = Add(x, x)", "q = Mul(x, x)"),
    "products": ("r = MatMul(x, w)  p = Relu(r)", "q = Neg(x)"),
    "sums": (
        "s = ReduceSum(x)  p = Mul(x, s)",
        "zero = Constant<value_ints = [0]>()  s2 = ReduceMax(x, zero)  q = Sub(x, s2)",
    ),
    "sizes": ("p = Concat<axis = 0>(x, x)", "q = Identity(w)"),
}


@pytest.mark.parametrize("kind", BRANCHES)
def test_any_size(kind: str) -> None:
    """Small integers, whose sums are exact; branches may give other sizes."""
    then, other = BRANCHES[kind]
    text = f"""sized (bool c, float[n,4] x) => (float[m,4] y)
    <float[4,4] w = {{1, 2, 3, -1, 0, 2, -2, 1, 4, 1, -3, 2, 2, 0, 1, 1}}> {{
      y = If (c) <
        then_branch = a () => (p) {{ {then} }},
        else_branch = b () => (q) {{ {other} }}>
    }}"""
    model = onnx.parser.parse_model(HEAD + text)
    program = nanoloom.compile(model, threads=1, cache=shared_cache())
    random = np.random.default_rng(len(kind))
    for n in (3, 40, 1, 17):
        for taken in (True, False):
            x = random.integers(-3, 4, (n, 4)).astype(np.float32)
            feeds = {"c": np.array(taken), "x": x}
            (wanted,) = reference(model, feeds)
            found = program(feeds)["y"]
            assert found.shape == wanted.shape
            np.testing.assert_array_equal(found, wanted)
    if kind == "sizes":  # then the condition's value decides
        assert "its branches give the shapes" in program.open.reason
    else:
        assert not program.open.reason
