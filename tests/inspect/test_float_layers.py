"""Layers of quantized networks that are computed in floats, with their reasons."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from nanoloom.explain.float_layers import NO_FORM, NOT_QUANTIZED
from nanoloom.graph.integer_products import NO_BIAS, NO_BYTES, NO_SCALE, NO_WEIGHT
from nanoloom.inspect.float_layers import float_layers
from tests.graph.models import proto

CONSTANTS = """<float s = {0.05}, float zero = {0.0}, uint8 z = {3}, uint16 wide = {9},
    int8[4, 4] w = {1, -2, 3, 4, 5, 6, -7, 8, 9, 1, 2, 3, 4, 5, -6, 7},
    int8[4, 4, 1, 1] f = {1, -2, 3, 4, 5, 6, -7, 8, 9, 1, 2, 3, 4, 5, -6, 7},
    float[4] each = {0.1, 0.2, 0.3, 0.4}, float[4, 4] bias = {1.0, 2.0, 3.0, 4.0, 5.0,
    6.0, 7.0, 8.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0}, int64[1] from = {2},
    int64[1] to = {4}>"""
INPUT = "d = DequantizeLinear(x, s, z) v = DequantizeLinear(w, s)"
LAST = "y = QuantizeLinear(a, s, z)"


def found(body: str, x: str = "uint8[4, 4]", y: str = "uint8[4, 4]") -> dict[str, str]:
    """The reason of each layer by its operator."""
    text = f"g ({x} x) => ({y} y) {CONSTANTS} {{ {body} }}"
    layers = float_layers(ir.from_proto(proto(text)), {})
    return {layer.operator: layer.reason for layer in layers}


WHOLE = {
    "product": f"{INPUT} a = MatMul(d, v) {LAST}",
    "elementwise": f"{INPUT} b = Tanh(d) a = Mul(b, d) {LAST}",
    "moves": f"{INPUT} a = Transpose(d) {LAST}",
    "joined": f"""{INPUT} h = Slice(d, from, to) b = Add(h, h)
        c = QuantizeLinear(b, s, z) e = DequantizeLinear(c, s, z)
        a = Concat<axis = 0>(h, e) {LAST}""",
    "floats alone": "a = DequantizeLinear(x, s, z) " + LAST,
}


@pytest.mark.parametrize("name", WHOLE)
def test_integers_all_along(name: str) -> None:
    assert found(WHOLE[name]) == {}


@pytest.mark.parametrize(
    ("body", "operator", "reason"),
    [
        (f"{INPUT} a = Softmax(d) {LAST}", "Softmax", NO_FORM),
        (f"{INPUT} b = Exp(d) a = Softmax(b) {LAST}", "Softmax", NO_FORM),
        (f"{INPUT} b = MatMul(d, v) a = Softmax(b) {LAST}", "MatMul", NOT_QUANTIZED),
        (f"{INPUT} b = MatMul(d, v) a = Add(b, d) {LAST}", "MatMul", NOT_QUANTIZED),
        (f"{INPUT} a = MatMul(d, d) {LAST}", "MatMul", NO_WEIGHT),
        (f"{INPUT} b = Exp(d) a = MatMul(b, v) {LAST}", "MatMul", NO_BYTES),
        (f"{INPUT} a = Gemm(d, v, bias) {LAST}", "Gemm", NO_BIAS),
        (
            f"{INPUT} u = DequantizeLinear(w, zero) a = MatMul(d, u) {LAST}",
            "MatMul",
            NO_SCALE,
        ),
    ],
)
def test_reasons(body: str, operator: str, reason: str) -> None:
    assert found(body)[operator] == reason


def test_a_convolution_with_scales_along_its_channels() -> None:
    body = f"""d = DequantizeLinear(x, s, z) v = DequantizeLinear<axis = 1>(f, each)
        a = Conv(d, v) {LAST}"""
    size = "uint8[1, 4, 5, 5]"
    assert found(body, size, size) == {"Conv": NO_WEIGHT}


def test_networks_of_floats_are_not_looked_at() -> None:
    text = "g (float[2, 3] x) => (float[2, 3] y) { y = Softmax(x) }"
    assert float_layers(ir.from_proto(proto(text)), {}) == ()


def test_what_ends_in_floats_is_as_the_model_says() -> None:
    assert found(f"{INPUT} y = MatMul(d, v)", y="float[4, 4]") == {}
