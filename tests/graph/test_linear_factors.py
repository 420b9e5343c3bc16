"""Numbers go to the smaller operand of a product."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser
from onnx_ir import serde

import nanoloom
from nanoloom.graph.stage import optimize
from nanoloom.linalg.operators import OPERATORS

TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, M, 8] q, float[2, 8, 20] k) => (float[2, M, 20] y, float[2, 8, 20] z)
{
    c = Constant<value = CONSTANT>()
    scaled = Mul(c, k)
    y = MatMul(q, scaled)
    z = Neg(OTHER)
}
"""


@pytest.mark.parametrize(
    ("rows", "constant", "other", "moved"),
    [
        ("3", "float {0.5}", "k", True),
        ("3", "float[1] {0.5}", "k", True),
        ("30", "float {0.5}", "k", False),  # q is the larger one
        ("3", "float {0.5}", "scaled", False),  # somebody else reads it
        ("3", "float[2] {0.5, 1}", "k", True),  # a number for each matrix
    ],
)
def test_which_operand(rows: str, constant: str, other: str, moved: bool) -> None:
    text = TEXT.replace("M]", f"{rows}]").replace("M,", f"{rows},")
    text = text.replace("CONSTANT", constant).replace("OTHER", other)
    if "[2] {" in constant:
        text = text.replace("Mul(c, k)", "Mul(c2, k)").replace(
            "scaled =", "s = Constant<value = int64[3] {2, 1, 1}>() c2 = Reshape(c, s) "
            "scaled =",
        )  # fmt: skip
    model = serde.deserialize_model(parser.parse_model(text))
    optimize(model, OPERATORS.keys())
    (product,) = (n for n in model.graph if n.op_type == "MatMul")
    left, right = product.inputs
    assert left is not None and right is not None
    assert (left.producer() is not None) == moved
    assert (right.producer() is None) == moved


@pytest.mark.parametrize("seed", range(12))
def test_factors_drawn_at_random(seed: int) -> None:
    """Of any axes of either operand: exact, as all numbers are small and whole."""
    random = np.random.default_rng(seed)
    m, n = (3, 20)[:: 1 if seed % 2 else -1]
    factor = [int(random.choice([1, d])) for d in (2, 8, n)]
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[2, {m}, 8] q, float[2, 8, {n}] k, float[{factor}] c) =>
      (float[2, {m}, {n}] y) {{ s = Mul(k, c)  y = MatMul(q, s) }}""".replace(
        f"[{factor}]", f"{factor}"
    )
    model = serde.deserialize_model(parser.parse_model(text))
    optimize(model, OPERATORS.keys())
    (product,) = (x for x in model.graph if x.op_type == "MatMul")
    moves = m < n and factor[1:] == [1, 1]
    assert (product.inputs[0].producer() is not None) == moves  # type: ignore[union-attr] - a MatMul has it
    arrays = {
        "q": random.integers(-4, 5, (2, m, 8)).astype(np.float32),
        "k": random.integers(-4, 5, (2, 8, n)).astype(np.float32),
        "c": random.integers(1, 5, factor).astype(np.float32),
    }
    found = nanoloom.compile(parser.parse_model(text))(arrays)["y"]
    wanted = arrays["q"] @ (arrays["k"] * arrays["c"])
    assert np.array_equal(found, wanted)
    assert not np.array_equal(arrays["q"] @ arrays["k"], wanted)
