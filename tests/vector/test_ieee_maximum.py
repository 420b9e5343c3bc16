"""Maxima that leave NaN out: by one instruction, of a value that is never NaN."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

from nanoloom import mlir
from nanoloom.cache import Cache
from nanoloom.compile_program import compile
from nanoloom.linalg.reductions.softmax import normalized
from nanoloom.mlir import ir
from nanoloom.options import CompileOptions
from nanoloom.runtime.emulation import machine, run_emulated
from nanoloom.target import by_name
from nanoloom.vector.ieee_maximum import use_ieee_maximum
from tests.c_libraries import lend
from tests.vector.kernel_harness import program_of, stage_text

LOOP = """
func.func @f(%x: vector<[4]xf32>, %y: vector<[4]xf32>, %n: index) -> vector<[4]xf32> {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %low = arith.constant dense<{start}> : vector<[4]xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%m = {begin}) -> vector<[4]xf32> {{
    %c = arith.cmpf ogt, %x, %m : vector<[4]xf32>
    %s = arith.select %c, %x, {other} : vector<[4]xi1>, vector<[4]xf32>
    scf.yield %s : vector<[4]xf32>
  }}
  return %r : vector<[4]xf32>
}}
"""
LOWEST, NAN = "0xFF800000", "0x7FC00000"


@pytest.mark.parametrize(
    ("start", "begin", "other", "written"),
    [
        (LOWEST, "%low", "%m", True),
        (NAN, "%low", "%m", False),
        (LOWEST, "%y", "%m", False),
        (LOWEST, "%low", "%y", False),
    ],
)
def test_where_nothing_is_nan(
    start: str, begin: str, other: str, written: bool
) -> None:
    """What a loop begins with, and carries on, is a number or the choice stays."""
    with mlir.context():
        module = ir.Module.parse(LOOP.format(start=start, begin=begin, other=other))
        use_ieee_maximum(module, by_name("rv64gcv"))
        assert ("arith.maxnumf" in str(module)) is written
        assert ("arith.select" in str(module)) is not written


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("rv64gcv", "vfmax.v"),
        ("armv9-sve2", "fmaxnm"),
        ("aarch64", "fmaxnm"),
        ("x86-64-v3", "vmaxps"),
    ],
)
def test_the_instruction(name: str, word: str) -> None:
    program = program_of(
        lambda b, x: normalized(b, x, [1], np.dtype("float32")), ((9, 333), "float32")
    )
    assert word in stage_text(program, "asm", by_name(name))


@pytest.mark.parametrize("name", ["riscv64+v:vlen=256", "aarch64+sve:sve=256"])
def test_infinities_and_nan(name: str, tmp_path: Path) -> None:
    """A row that has NaN is NaN, as one of -inf alone; others have parts as exact."""
    x = np.random.default_rng(3).uniform(-100, 0, (5, 77)).astype(np.float32)
    x[0, 3], x[1, 70], x[2, ::2], x[3] = np.nan, np.nan, -np.inf, -np.inf
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]>'
        "s (float[5, 77] x) => (float[5, 77] y) { y = Softmax(x) }"
    )
    cache, run = Cache(tmp_path / "cache"), machine(name)
    lend(run.target.arch, cache)
    program = compile(model, options=CompileOptions(run.target), cache=cache)
    path = program.save(tmp_path / "soft", form="executable")
    got = run_emulated(run, path, [x], {"y": np.dtype("float32")})["y"]
    assert np.isnan(got[[0, 1, 3]]).all()
    wide = x[[2, 4]].astype(np.float64)
    want = np.exp(wide - wide.max(-1, keepdims=True))
    want /= want.sum(-1, keepdims=True)
    # A sum of 77, its reciprocal, a product; what is below 2^-126 may be 0.
    bound = (77 + 4) * np.finfo(np.float32).eps * want + 2.0**-126
    assert (abs(got[[2, 4]] - want) <= bound).all()
    assert not (abs(np.roll(got[[2, 4]], 1, -1) - want) <= bound).all()
