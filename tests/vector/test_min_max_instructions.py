"""The larger of a vector and a number: one instruction of x86, whatever stores it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from nanoloom import mlir
from nanoloom.compile_program import compile
from nanoloom.mlir import ir
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from nanoloom.target.host import host
from nanoloom.vector.min_max_instructions import use_min_max_instructions

CHOICE = """
func.func @f(%x: vector<{lanes}xf32>, %y: vector<{lanes}xf32>) -> vector<{lanes}xf32> {{
  %zero = arith.constant dense<0.0> : vector<{lanes}xf32>
  %again = arith.constant dense<{number}> : vector<{lanes}xf32>
  %c = arith.cmpf {word}, %zero, {one} : vector<{lanes}xf32>
  %s = arith.select %c, %again, %x : vector<{lanes}xi1>, vector<{lanes}xf32>
  return %s : vector<{lanes}xf32>
}}
"""
USUAL = {"lanes": 16, "number": "0.0", "word": "ogt", "one": "%x"}


@pytest.mark.parametrize(
    ("name", "changed", "written"),
    [
        ("x86-64-v4", {}, "avx512.max.ps.512"),
        ("x86-64-v4", {"word": "olt"}, "avx512.min.ps.512"),
        ("x86-64-v3", {"lanes": 8}, "avx.max.ps.256"),
        ("x86-64-v2", {"lanes": 4}, "sse.max.ps"),
        ("x86-64-v3", {}, ""),
        ("x86-64-v4", {"number": "1.0"}, ""),
        ("x86-64-v4", {"one": "%y"}, ""),
        ("x86-64-v4", {"word": "oge"}, ""),
        ("x86-64-v4", {"lanes": 3}, ""),
        ("aarch64", {"lanes": 4}, ""),
    ],
)
def test_what_is_one(name: str, changed: dict[str, object], written: str) -> None:
    """What is compared is chosen, in a whole register, by greater or less."""
    with mlir.context():
        module = ir.Module.parse(CHOICE.format(**{**USUAL, **changed}))
        use_min_max_instructions(module, by_name(name))
        module.operation.verify()
        text = str(module)
    assert (f"llvm.x86.{written}" in text) if written else ("arith.select" in text)


@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v3", "host"])
def test_nan_and_zeros_stay(name: str) -> None:
    """ReLU by ONNX: NaN is NaN, and the zero that is not above another one stays."""
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (float[3,37] x) => (float[3,37] y)'
        "{ y = Relu(x) }"
    )
    target = host() if name == "host" else by_name(name)
    numbers = [np.nan, -0.0, 0.0, -np.inf, np.inf, -1e-45, 2.5]
    x = np.resize(np.array(numbers, np.float32), (3, 37))
    (y,) = compile(model, options=CompileOptions(target), threads=1)({"x": x}).values()
    wanted = np.where(x < 0, np.float32(0), x)
    assert np.array_equal(y, wanted, equal_nan=True)
    assert np.array_equal(np.signbit(y), np.signbit(wanted))
