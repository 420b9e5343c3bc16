"""Functions of one 8-bit number between two quantizations become tables."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnx_ir as ir
import pytest
from onnx.reference import ReferenceEvaluator

from nanoloom.graph.quantization import BITS
from tests.graph.models import operators, optimized, proto
from tests.linalg.harness import evaluate

CONSTANTS = """<float s = {0.0737}, float t = {0.0039}, float r = {0.0377},
    float six = {6.0}, float[1, 1] half = {0.5}, uint8 z = {128}, uint8 w = {0},
    uint8 v = {7}, int8 n = {-3}, float[5] each = {0.1, 0.2, 0.3, 0.4, 0.5},
    uint8[5] zeros = {1, 2, 3, 4, 5}, uint16 wide = {9}, float[1, 5] row =
    {1.0, 2.0, 3.0, 4.0, 5.0}>"""
GATE = """a = Sigmoid(d) q = QuantizeLinear(a, t, w)
    e = DequantizeLinear(q, t, w)"""
FUNCTIONS = {
    "SiLU": f"{GATE} f = Mul(d, e)",
    "SiLU, not quantized in between": "a = Sigmoid(d) f = Mul(a, d)",
    "HardSwish": "f = HardSwish(d)",
    "Gelu": "f = Gelu(d)",
    "Tanh": "f = Tanh(d)",
    "Relu6": "f = Clip(d, half, six)",
    "another quantization": "f = Identity(d)",
    "numbers on either side": "a = Mul(half, d) f = Sub(six, a)",
    "quantized twice": """a = Tanh(d) q = QuantizeLinear(a, t, n)
        e = DequantizeLinear(q, t, n) f = Exp(e)""",
}
TYPES = {"uint8": ("z", "v"), "int8": ("n", "n")}


def model(body: str, x: str = "uint8", y: str = "uint8") -> str:
    start, end = TYPES[x][0], TYPES[y][1]
    return f"""g ({x}[256, 5] x) => ({y}[256, 5] y) {CONSTANTS} {{
        d = DequantizeLinear(x, s, {start}) {body}
        y = QuantizeLinear(f, r, {end}) }}"""


def every(kind: str) -> np.ndarray:
    """All numbers, in an order of its own in each column."""
    rng = np.random.default_rng(7)
    columns = [rng.permutation(BITS) for _ in range(5)]
    return np.stack(columns, axis=1).view(kind)


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("name", "x", "y"), [*product(FUNCTIONS, TYPES, TYPES)], ids=str
)
def test_all_numbers_are_the_references(name: str, x: str, y: str) -> None:
    text = model(FUNCTIONS[name], x, y)
    assert operators(optimized(text)) == ["Table"]
    got = evaluate(proto(text), {"x": every(x)})[0]
    (right,) = ReferenceEvaluator(proto(text)).run(None, {"x": every(x)})
    assert got.dtype == np.dtype(y)
    np.testing.assert_array_equal(got, right)
    assert (got != every(x)).any()


@pytest.mark.parametrize("operator", ["Reciprocal", "Exp"])
@pytest.mark.parametrize("y", TYPES)
def test_what_is_beyond_all_integers_saturates(operator: str, y: str) -> None:
    """The reference wraps where a number has more than 32 bits."""
    text = model(f"b = Mul(d, far) f = {operator}(b)", "uint8", y).replace(
        "<float s", "<float far = {15.0}, float s"
    )
    assert operators(optimized(text)) == ["Table"]
    got = evaluate(proto(text), {"x": every("uint8")})[0]
    x = (every("uint8").astype(np.float32) - 128) * np.float32(0.0737) * 15
    with np.errstate(all="ignore"):
        f = 1 / x if operator == "Reciprocal" else np.exp(x, dtype=np.float32)
    zero = 7 if y == "uint8" else -3
    exact = np.rint(f.astype(np.float64) / 0.0377) + zero
    right = np.clip(exact, np.iinfo(y).min, np.iinfo(y).max)
    assert (abs(got - right) <= 1).all()
    assert (got == right).mean() > 0.9
    assert (f > 1e9).any()


def test_tables_take_the_layout_of_what_they_read() -> None:
    graph = optimized(f"""g (uint8[1, 3, 4, 5] x) => (uint8[1, 6, 4, 5] y) {CONSTANTS}
        {{ p = Transpose<perm = [0, 2, 3, 1]>(x) d = DequantizeLinear(p, s, z)
        f = Tanh(d) q = QuantizeLinear(f, r, v)
        u = Transpose<perm = [0, 3, 1, 2]>(q) y = Concat<axis = 1>(u, u) }}""")
    assert operators(graph) == ["Table", "Concat"]
    assert graph[0].outputs[0].shape == ir.Shape([1, 3, 4, 5])


def test_a_value_between_that_others_read_stays() -> None:
    graph = optimized(f"""g (uint8[256, 5] x) => (uint8[256, 5] y, uint8[256, 5] q)
        {CONSTANTS} {{ d = DequantizeLinear(x, s, z) {FUNCTIONS["SiLU"]}
        y = QuantizeLinear(f, r, v) }}""")
    assert operators(graph) == ["Table", "Table"]
    assert {node.inputs[0] for node in graph} == {graph.inputs[0]}


REFUSED = {
    "two numbers": f"{GATE} f = Mul(d, b)",
    "a scale each": """q = QuantizeLinear<axis = 1>(d, each, zeros)
        e = DequantizeLinear<axis = 1>(q, each, zeros) f = Tanh(e)""",
    "a number each": "f = Mul(d, row)",
    "no element alone": "f = Softmax(d)",
    "no random one": "a = RandomUniformLike(d) f = Add(a, d)",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_function_of_one_number(name: str) -> None:
    text = model(REFUSED[name]).replace("x)", "x, float[256, 5] b)", 1)
    assert operators(optimized(text))[-1] == "QuantizeLinear"


def test_sixteen_bits_are_no_table() -> None:
    text = f"""g (uint16[256, 5] x) => (uint8[256, 5] y) {CONSTANTS} {{
        d = DequantizeLinear(x, s, wide) f = Tanh(d) y = QuantizeLinear(f, r, v) }}"""
    assert "Table" not in operators(optimized(text))
