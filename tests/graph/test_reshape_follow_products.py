"""Reshapes sink behind the elementwise operations that follow a product."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tests.graph.models import operators, optimized, proto, shapes
from tests.linalg.harness import evaluate

ONES = ",".join(f"{0.25 * (i % 7 - 3)}" for i in range(40))
WEIGHTS = f"""<float[5,8] w = {{{ONES}}}, int64[3] heads = {{3, 2, 4}},
    int64[3] five = {{5, 3, 1}}, int64[1] flat = {{-1}}, float c = {{0.3}},
    float[1,1] two = {{0.5}}, float[1,1,1,1] four = {{0.5}}, uint8 z = {{9}},
    float[4] each = {{1, 2, 3, 4}}>"""


def text(body: str, y: str = "float[3, 2, 4]") -> str:
    return f"g (float[3, 5] x) => ({y} y) {WEIGHTS} {{ {body} }}"


SUNK = {
    "Mul": "p = MatMul(x, w) r = Reshape(p, heads) y = Mul(c, r)",
    "Add Mul": "p = MatMul(x, w) q = Add(p, c) r = Reshape(q, heads) y = Mul(r, c)",
    "Relu": "p = Gemm(x, w) r = Reshape(p, heads) y = Relu(r)",
    "QuantizeLinear DequantizeLinear": """p = MatMul(x, w) r = Reshape(p, heads)
        q = QuantizeLinear(r, c, z) y = DequantizeLinear(q, c, z)""",
}


@pytest.mark.parametrize("names", SUNK)
def test_what_follows_a_product_follows_it_at_once(names: str) -> None:
    model = text(SUNK[names])
    graph = optimized(model)
    _, *behind = operators(graph)
    assert behind == [*names.split(), "Reshape"]
    assert shapes(graph)["y"] == (3, 2, 4)
    x = np.linspace(-2, 2, 15, dtype=np.float32).reshape(3, 5)
    got = evaluate(proto(model), {"x": x})[0]
    (right,) = ReferenceEvaluator(proto(model)).run(None, {"x": x})
    bound = 10 * np.finfo(np.float32).eps * (5 * 2 * 0.75 + 1)
    step = 0.3 if "Quantize" in names else 0  # where a float is next to a tie
    assert (abs(got - np.asarray(right)) <= bound + step).all()
    assert not (abs(0 * got - np.asarray(right)) <= bound + step).all()


def test_transposes_let_it_through() -> None:
    graph = optimized(
        text(
            """p = MatMul(x, w) r = Reshape(p, heads)
        t = Transpose<perm = [1, 0, 2]>(r) y = Mul(t, c)""",
            "float[2, 3, 4]",
        )
    )
    assert operators(graph) == ["MatMul", "Mul", "Reshape", "Transpose"]


STAYS = {
    "no product": "p = Neg(x) r = Reshape(p, five) y = Mul(r, c)",
    "many numbers": "p = MatMul(x, w) r = Reshape(p, heads) y = Mul(r, each)",
    "more dimensions": "p = MatMul(x, w) r = Reshape(p, heads) y = Mul(r, four)",
    "more than before": "p = MatMul(x, w) r = Reshape(p, flat) y = Mul(r, two)",
    "another reader": """p = MatMul(x, w) r = Reshape(p, heads) m = Mul(r, c)
        y = Add(m, r)""",
    "the product is needed": """p = MatMul(x, w) r = Reshape(p, heads) m = Mul(r, c)
        k = ReduceSum<keepdims = 0>(p) y = Add(m, k)""",
    "twice": "p = MatMul(x, w) r = Reshape(p, heads) y = Mul(r, r)",
}


@pytest.mark.parametrize("name", STAYS)
def test_what_stays(name: str) -> None:
    shape = {"more dimensions": "A, B, C, D", "more than before": "A, B"}.get(
        name, "A, B, C"
    )
    names = operators(optimized(text(STAYS[name], f"float[{shape}]")))
    assert names.index("Reshape") < names.index("Mul")
