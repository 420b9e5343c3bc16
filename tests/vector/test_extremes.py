"""The larger and the smaller float: a target's instruction, where it is right."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser

from nanoloom.cache import Cache
from nanoloom.compile_program import compile
from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir
from nanoloom.linalg.reductions.softmax import normalized
from nanoloom.options import CompileOptions
from nanoloom.runtime.emulation import machine, run_emulated
from nanoloom.target import by_name
from nanoloom.target.host import host
from nanoloom.vector.extremes import use_extremes
from tests.c_libraries import lend
from tests.vector.kernel_harness import program_of, run, stage_text

# ---- a vector and a number: x86's, whatever stores it

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
        use_extremes(module, by_name(name))
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


# ---- maxima that leave NaN out: Arm's and RISC-V's, of a value that is never NaN

LOOP = """
func.func @f(%x: vector<[4]xf32>, %y: vector<[4]xf32>, %n: index) -> vector<[4]xf32> {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %low = arith.constant dense<{start}> : vector<[4]xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%m = {begin}) -> vector<[4]xf32> {{
    %c = arith.cmpf {word}, %x, %m : vector<[4]xf32>
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
@pytest.mark.parametrize(("word", "made"), [("ogt", "maxnumf"), ("olt", "minnumf")])
def test_where_nothing_is_nan(
    start: str, begin: str, other: str, written: bool, word: str, made: str
) -> None:
    """What a loop begins with, and carries on, is a number or the choice stays."""
    with mlir.context():
        module = ir.Module.parse(
            LOOP.format(start=start, begin=begin, other=other, word=word)
        )
        use_extremes(module, by_name("rv64gcv"))
        assert (f"arith.{made}" in str(module)) is written
        assert ("arith.select" in str(module)) is not written


SMALLER = """
func.func @f(%x: vector<4xf32>) -> vector<4xf32> {{
  %y = arith.constant dense<{number}> : vector<4xf32>
  %c = arith.cmpf {word}, %x, %y : vector<4xf32>
  %s = arith.select %c, %x, %y : vector<4xi1>, vector<4xf32>
  return %s : vector<4xf32>
}}
"""


@pytest.mark.parametrize("name", ["aarch64", "rv64gcv"])
@pytest.mark.parametrize(
    ("number", "word", "written"),
    [
        ("6.0", "olt", True),
        ("0.0", "olt", False),
        ("-0.0", "olt", True),
        ("-0.0", "ogt", False),
        ("0.0", "ogt", True),
    ],
)
def test_a_zero_that_would_lose(
    name: str, number: str, word: str, written: bool
) -> None:
    """The choice gives the second zero, these instructions -0.0 as the smaller one."""
    with mlir.context():
        module = ir.Module.parse(SMALLER.format(number=number, word=word))
        use_extremes(module, by_name(name))
        assert ("arith.select" not in str(module)) is written


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
    cache, emulated = Cache(tmp_path / "cache"), machine(name)
    lend(emulated.target.arch, cache)
    program = compile(model, options=CompileOptions(emulated.target), cache=cache)
    path = program.save(tmp_path / "soft", form="executable")
    got = run_emulated(emulated, path, [x], {"y": np.dtype("float32")})["y"]
    assert np.isnan(got[[0, 1, 3]]).all()
    wide = x[[2, 4]].astype(np.float64)
    want = np.exp(wide - wide.max(-1, keepdims=True))
    want /= want.sum(-1, keepdims=True)
    # A sum of 77, its reciprocal, a product; what is below 2^-126 may be 0.
    bound = (77 + 4) * np.finfo(np.float32).eps * want + 2.0**-126
    assert (abs(got[[2, 4]] - want) <= bound).all()
    assert not (abs(np.roll(got[[2, 4]], 1, -1) - want) <= bound).all()


# ---- those that keep NaN: three instructions of AVX-512

NUMBERS = [0.0, -0.0, 1.5, -1.5, 3e38, -3e38, 1e-45, np.inf, -np.inf, np.nan]
PAIRS = list(itertools.product(NUMBERS, NUMBERS))


def either(word: str) -> Any:
    return lambda b, x, y: b.elementwise(lambda s, t: getattr(s, word)(t), x, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("word", ["maximum", "minimum"])
def test_all_kinds_of_numbers(word: str, dtype: str) -> None:
    """NaN where one is; of two zeros the positive is larger."""
    x, y = (np.array(row, dtype) for row in zip(*PAIRS, strict=True))
    got = run(either(word), x, y)
    wanted = getattr(np, word)(x, y)
    assert np.array_equal(got, wanted, equal_nan=True)
    signs = np.signbit(x) & np.signbit(y)
    if word == "minimum":
        signs = np.signbit(x) | np.signbit(y)
    zeros = (x == 0) & (y == 0)
    assert zeros.sum() == 4
    assert np.array_equal(np.signbit(got)[zeros], signs[zeros])


@pytest.mark.parametrize(
    ("name", "there"), [("x86-64-v4", True), ("x86-64-v3", False), ("aarch64", False)]
)
def test_the_range_instruction(name: str, there: bool) -> None:
    """With a comparison each; where there is none, LLVM's own way."""
    program = program_of(either("maximum"), ((64,), "float32"), ((64,), "float32"))
    text = stage_text(program, "asm", by_name(name))
    ranges = text.count("vrangeps")
    assert (ranges > 0) is there
    assert not there or text.count("vcmpunordps") == ranges


def test_a_constant_is_left_to_llvm() -> None:
    program = program_of(
        lambda b, x: b.elementwise(lambda s: s.maximum(1.5), x), ((64,), "float32")
    )
    text = stage_text(program, "asm", by_name("x86-64-v4"))
    assert "vmaxps" in text and "vrangeps" not in text
