"""Small models, as text."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import parser

HEADER = '<ir_version: 8, opset_import: ["" : 17, "my.ops" : 1, "com.microsoft" : 1]>'

RELU = "g (float[batch, 3] x) => (float[batch, 3] y) { y = Relu(x) }"
# A sum of 7 products, and two outputs.
DENSE = """
    g (float[batch, 7] x, float[7, 5] w) => (float[batch, 5] y, float[batch, 5] z) {
      m = MatMul(x, w)
      y = Relu(m)
      z = Softmax(m)
    }
"""
BY_VALUE = """
    g (int64 n) => (int64[k] q) {
      zero = Constant<value = int64 {0}>()
      one = Constant<value = int64 {1}>()
      q = Range(zero, n, one)
    }
"""
# A table of 64 numbers, of which the first are read.
POSITIONS = """
    g (float[length] x) => (float[length] y) {
      count = Constant<value_ints = [64]>()
      zero = Constant<value_ints = [0]>()
      table = ConstantOfShape<value = float[1] {1}>(count)
      n = Shape(x)
      first = Slice(table, zero, n)
      y = Add(x, first)
    }
"""
UNKNOWN = "g (float[2, 3] x) => (float[2, 3] y) { y = Rellu(x) }"
FOREIGN = "g (float[2, 3] x) => (float[2, 3] y) { y = my.ops.Foo(x) }"
MANY_PROBLEMS = """
    g (float[batch, 7] x, float[7, 5] w) => (float[batch, 5] y, float z, float q) {
      a = com.microsoft.Sampling(x, w)
      b = com.microsoft.Sampling(x, w)
      y = Add(a, b)
      f = my.ops.Foo(x)
      q = Rellu(f)
      z = MatMul(x, x)
    }
"""
DATA_DEPENDENT = """
    g (float[4000] x) => (int64[1, n] y, int64[1, m] z) {
      n = NonZero(x)
      y, z = Split<axis = 1>(n)
    }
"""
COMPLEX = """
    g (complex64[2] s, float[2] x) => (float[2] y, complex64[2] t) {
      y = Relu(x)
      t = Identity(s)
    }
"""
NO_INPUT = "g () => (float[2] y) { y = Constant<value = float[2] {1.5, -2}>() }"
RANDOM = """
    g (float[2] x) => (float[2] y) {
      r = RandomUniformLike(x)
      y = Add(x, r)
    }
"""
WITH_WEIGHT = """
    g (float[2, 3] x) => (float[2, 3] y) <float[2, 3] w = {1, 2, 3, 4, 5, 6}> {
      y = Add(x, w)
    }
"""


def write(folder: Path, text: str, name: str = "model.onnx", opset: int = 0) -> Path:
    """Save a graph in ONNX's text form; opset: of the default domain, if not 17."""
    model = parser.parse_model(HEADER + text)
    if opset:
        model.opset_import[0].version = opset
    path = folder / name
    onnx.save(model, path)
    return path


def write_external(folder: Path, location: str = "") -> Path:
    """WITH_WEIGHT, its weight in weights.bin beside it; location: what to call that."""
    model = parser.parse_model(HEADER + WITH_WEIGHT)
    weight = model.graph.initializer[0]
    data = onnx.numpy_helper.to_array(weight).tobytes()
    for name in ("raw_data", "float_data"):
        weight.ClearField(name)
    (folder / "weights.bin").write_bytes(data)
    weight.data_location = onnx.TensorProto.EXTERNAL
    facts = {"location": location or "weights.bin", "length": str(len(data))}
    for key, value in facts.items():
        weight.external_data.add(key=key, value=value)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path
