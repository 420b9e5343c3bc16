"""Sums of two 8-bit numbers between quantizations become one rounding, or stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from nanoloom.graph.integer_sums import Formula, produces
from nanoloom.graph.lookup_tables import maps_bytes
from nanoloom.graph.quantization import BITS
from tests.graph.models import operators, optimized, proto
from tests.linalg.harness import evaluate

ZEROS = {"uint8": (121, 7, 0), "int8": (-3, 0, -128)}
SUM = "f = Add(d, e)"


def model(
    x: str, y: str, out: str, scales: tuple[float, float, float], body: str = SUM
) -> str:
    """Both tensors hold every number, beside every other one."""
    zeros = ZEROS[x][0], ZEROS[y][1], ZEROS[out][2]
    return f"""g ({x}[256, 256] x, {y}[256, 256] y) => ({out}[256, 256] z)
        <float s = {{{scales[0]}}}, float t = {{{scales[1]}}}, {x} zx = {{{zeros[0]}}},
        float r = {{{scales[2]}}}, {y} zy = {{{zeros[1]}}}, {out} zz = {{{zeros[2]}}},
        float six = {{6.0}}, float none = {{0.0}}, float neg = {{-0.01}},
        float[256] each = {{{", ".join(["0.01"] * 256)}}}> {{
        d = DequantizeLinear(x, s, zx) e = DequantizeLinear(y, t, zy) {body}
        z = QuantizeLinear(f, r, zz) }}"""


def pairs(x: str, y: str) -> dict[str, np.ndarray]:
    one, other = np.meshgrid(BITS, BITS, indexing="ij")
    return {"x": one.view(x), "y": other.view(y)}


def check(text: str, x: str, y: str) -> None:
    assert operators(optimized(text)) == ["Sum"]
    got = evaluate(proto(text), pairs(x, y))[0]
    (right,) = ReferenceEvaluator(proto(text)).run(None, pairs(x, y))
    np.testing.assert_array_equal(got, right)
    assert len(np.unique(got)) > 40


@pytest.mark.parametrize(
    ("x", "y", "out"),
    [
        ("uint8", "uint8", "uint8"),
        ("int8", "uint8", "int8"),
        ("uint8", "int8", "uint8"),
        ("int8", "int8", "int8"),
    ],
)
@pytest.mark.parametrize("body", [SUM, "a = Add(e, d) f = Relu(a)"])
def test_all_pairs_are_the_references(x: str, y: str, out: str, body: str) -> None:
    check(model(x, y, out, (0.0371, 0.0532, 0.0713), body), x, y)


@pytest.mark.parametrize(
    "scales",
    [
        (0.5, 0.25, 1.0),  # ties, which go to the even number
        (0.013, 0.0017, 0.0123),
        (0.0031, 0.0029, 0.0047),
        (0.07, 0.11, 0.013),
    ],
    ids=str,
)
def test_scales_of_any_ratio(scales: tuple[float, float, float]) -> None:
    check(model("uint8", "uint8", "uint8", scales), "uint8", "uint8")


def test_a_limit_between() -> None:
    body = "a = Add(d, e) f = Clip(a, none, six)"
    scales = (0.0371, 0.0532, 0.0713)
    check(model("uint8", "int8", "uint8", scales, body), "uint8", "int8")


def test_most_random_scales_have_a_formula() -> None:
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(10):
        a, b, out = rng.uniform(0.004, 0.09, 3)
        text = model("uint8", "int8", "uint8", (a, b, max(out, a / 2)))
        found += operators(optimized(text)) == ["Sum"]
    assert found >= 8


def test_a_formula_that_misses_a_pair_is_not_taken() -> None:
    graph = optimized(model("uint8", "uint8", "uint8", (0.0371, 0.0532, 0.0713)))
    (node,) = graph
    assert maps_bytes(node)
    given = node.attributes
    by_a, by_b, start = (
        np.float32(given[word].as_float()) for word in ("by_a", "by_b", "start")
    )
    least, most = given["least"].as_int(), given["most"].as_int()
    formula = Formula(by_a, by_b, start, least, most)
    one, other = (x.astype(np.float64) for x in pairs("uint8", "uint8").values())
    right = formula.of(one, other, (True, True))
    assert produces(formula, one, other, right)
    beside = replace(formula, by_a=np.float32(formula.by_a * (1 + 1e-4)))
    assert not produces(beside, one, other, right)


STAY = {
    "three numbers": "a = Add(d, e) f = Add(a, d)",
    "a product": "f = Mul(d, e)",
    "a function behind": "a = Add(d, e) f = Tanh(a)",
    "a function in front": "a = Relu(d) f = Add(a, e)",
    "a number each": "a = Add(d, e) f = Add(a, each)",
}


@pytest.mark.parametrize("name", STAY)
def test_what_is_no_sum_of_two_numbers(name: str) -> None:
    text = model("uint8", "uint8", "uint8", (0.0371, 0.0532, 0.0713), STAY[name])
    assert "Sum" not in operators(optimized(text))
    assert operators(optimized(text))[-1] == "QuantizeLinear"


def test_one_number_twice_is_a_table() -> None:
    text = model("uint8", "uint8", "uint8", (0.03, 0.05, 0.07)).replace("(y,", "(x,")
    assert operators(optimized(text)) == ["Table"]


def test_a_negative_scale_stays() -> None:
    text = model("uint8", "uint8", "uint8", (0.03, 0.05, 0.07))
    text = text.replace("QuantizeLinear(f, r", "QuantizeLinear(f, neg")
    assert "Sum" not in operators(optimized(text))
