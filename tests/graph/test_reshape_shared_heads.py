"""Heads that share keys and values: the same numbers, and nothing repeated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator
from onnx_ir import serde

import nanoloom
from nanoloom.cache import Cache
from nanoloom.graph.stage import optimize
from nanoloom.graph.types import shape_of
from nanoloom.linalg.operators import OPERATORS

TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 6, M, 8] q, float[2, 2, 5, 8] k, float[2, 2, 5, 8] v, float[BIAS] bias,
   float[2, 1, 1, 5] mask) => (float[2, 6, M, 8] y)
{
    axis = Constant<value = int64[1] {2}>()
    wide = Constant<value = int64[5] {2, 2, 3, 5, 8}>()
    heads = Constant<value = int64[4] {2, 6, 5, 8}>()
    scale = Constant<value = float {0.35}>()
    k1 = Unsqueeze(k, axis)
    k2 = Expand(k1, wide)
    k3 = Reshape(k2, heads)
    k4 = Transpose<perm = [0, 1, 3, 2]>(k3)
    v1 = Unsqueeze(v, axis)
    v2 = Expand(v1, wide)
    v3 = Reshape(v2, heads)
    s = MatMul(q, k4)
    scaled = Mul(scale, s)
    biased = Add(bias, scaled)
    masked = Add(biased, mask)
    p = Softmax<axis = AXIS>(masked)
    y = MatMul(p, v3)
}
"""


def model(rows: int = 1, bias: str = "6, 1, 5", axis: int = 3) -> onnx.ModelProto:
    text = TEXT.replace("M]", f"{rows}]").replace("M, 8", f"{rows}, 8")
    return parser.parse_model(text.replace("BIAS", bias).replace("AXIS", str(axis)))


def operators(given: onnx.ModelProto) -> list[str]:
    made = optimize(serde.deserialize_model(given), OPERATORS.keys())
    return [node.op_type for node in made.graph]


def test_nothing_is_repeated() -> None:
    found = operators(model())
    assert "Expand" not in found
    first, second = (i for i, name in enumerate(found) if name == "MatMul")
    between = [name for name in found[first + 1 : second] if name != "Reshape"]
    assert between == ["Mul", "Add", "Add", "Softmax"]


def test_many_rows_stay() -> None:
    assert operators(model(rows=2)).count("Expand") == 2


def test_a_softmax_without_axis_stays() -> None:
    """Before opset 13 it goes over all heads."""
    given = parser.parse_model(
        TEXT.replace("M]", "1]")
        .replace("M, 8", "1, 8")
        .replace("BIAS", "5")
        .replace("<axis = AXIS>", "")
    )
    made = optimize(serde.deserialize_model(given), OPERATORS.keys())
    (found,) = [node for node in made.graph if node.op_type == "Softmax"]
    (x,) = found.inputs
    assert x is not None and shape_of(x) == (2, 6, 1, 5)


@pytest.mark.parametrize(
    ("bias", "axis"), [("6, 1, 5", -1), ("2, 6, 1, 1", 3), ("5", 3), ("1, 1, 5", 1)]
)
def test_numbers(tmp_path: Path, bias: str, axis: int) -> None:
    """Biases of every head, of a sentence, of none; a sum over heads is left alone."""
    given = model(bias=bias, axis=axis)
    random = np.random.default_rng(2)
    inputs: dict[str, np.ndarray] = {}
    for x in given.graph.input:
        shape = [d.dim_value for d in x.type.tensor_type.shape.dim]
        inputs[x.name] = random.standard_normal(shape).astype(np.float32)
    (wanted,) = ReferenceEvaluator(given).run(None, inputs)
    assert isinstance(wanted, np.ndarray)
    made = nanoloom.compile(given, threads=1, cache=Cache(tmp_path))(inputs)["y"]
    bound = 40 * np.finfo(np.float32).eps * np.abs(inputs["v"]).max()
    assert np.abs(made - wanted).max() <= bound
    assert np.abs(np.roll(made, 1, axis=1) - wanted).max() > bound
