"""exp by an instruction that multiplies by a power of two, and without it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from nanoloom.compile_program import compile
from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir
from nanoloom.linalg.builder.scalar import NONPOSITIVE
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from nanoloom.target.host import host
from nanoloom.vector.math.scale import scale_powers

EXP = """
func.func @f(%x: {kind}) -> {kind} {{
  %y = math.exp %x {{{words}}} : {kind}
  return %y : {kind}
}}
"""


@pytest.mark.parametrize(
    ("name", "kind", "words", "written"),
    [
        ("x86-64-v4", "vector<16xf32>", "", "scalef.ps.512"),
        ("x86-64-v4", "vector<8xf32>", "", "scalef.ps.256"),
        ("x86-64-v4", "vector<4xf32>", "", "scalef.ps.128"),
        ("x86-64-v4", "vector<16xf32>", NONPOSITIVE, ""),
        ("x86-64-v4", "vector<3xf32>", "", ""),
        ("x86-64-v4", "vector<2x16xf32>", "", ""),
        ("x86-64-v4", "vector<8xf64>", "", ""),
        ("x86-64-v4", "f32", "", ""),
        ("x86-64-v3", "vector<8xf32>", "", ""),
        ("aarch64", "vector<4xf32>", "", ""),
    ],
)
def test_what_is_scaled(name: str, kind: str, words: str, written: str) -> None:
    with mlir.context():
        module = ir.Module.parse(EXP.format(kind=kind, words=words))
        scale_powers(module, by_name(name))
        module.operation.verify()
        text = str(module)
    assert (f"llvm.x86.avx512.mask.{written}" in text) if written else "exp" in text


def test_the_numbers_are_those_without() -> None:
    """Bit by bit, of denormal results and of rows that fill no vector, too."""
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (float[4099] x) => (float[4099] y)'
        "{ y = Exp(x) }"
    )
    x = np.random.default_rng(1).uniform(-110, 95, 4099).astype(np.float32)
    special = [np.nan, -0.0, 0.0, -np.inf, np.inf, -1e-45, 3e38, -3e38]
    x[: len(special)] = special
    levels = (CompileOptions(t) for t in (host(), by_name("x86-64-v3")))
    made = [compile(model, options=each, threads=1)({"x": x})["y"] for each in levels]
    one, other = (y.view(np.int32) for y in made)
    assert np.array_equal(one, other)
    with np.errstate(over="ignore"):
        right = np.exp(x.astype(np.float64)).astype(np.float32)
    assert np.allclose(made[0], right, rtol=2e-7, atol=3e-45, equal_nan=True)
