"""Models whose reports are known: what is fused, what is slow and why."""

from __future__ import annotations

from onnx import ModelProto, parser

HEADER = '<ir_version: 10, opset_import: ["": 21]>'
# A product with its epilogue; a sine of f64, which has no vectors; a turned copy.
SLOW = """
    g (float[37, 53] x, float[53, 71] w) => (float[37, 71] y, double[71, 37] z) {
      m = MatMul(x, w)
      y = Relu(m)
      t = Transpose(y)
      d = Cast<to = 11>(t)
      z = Sin(d)
    }
"""
# Products that differ in the length of the sum alone: one kernel.
TWO_DEPTHS = """
    g (float[40, 33] a, float[33, 48] v, float[40, 65] b, float[65, 48] w)
      => (float[40, 48] y, float[40, 48] z) {
      y = MatMul(a, v)
      z = MatMul(b, w)
    }
"""
# A softmax between integers has no integer form.
FLOATS = """
    g (uint8[40, 64] x) => (uint8[40, 64] y)
      <float s = {0.05}, uint8 p = {3}> {
      d = DequantizeLinear(x, s, p)
      a = Softmax(d)
      y = QuantizeLinear(a, s, p)
    }
"""


def model(text: str) -> ModelProto:
    return parser.parse_model(HEADER + text)
