"""Floats from one format to another by integers: every case, and whole vectors.

tests/runtime/test_emulated_narrow.py has the numbers of vectors of any width.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nanoloom.ir.mlir import arith, context, ir, vector
from nanoloom.target import TARGETS, by_name
from nanoloom.target.host import host
from nanoloom.vector.float_casts import FORMATS, replace_casts
from nanoloom.vector.widths import with_element
from tests.vector.assembly import count
from tests.vector.kernel_harness import program_of, run, stage_text, targets
from tests.vector.math_harness import Compiled, lanes_module

OLD = by_name("x86-64-v2")  # every x86 can run it
HERE = (*targets(), OLD) if host().arch == OLD.arch else targets()
ROUNDS = pytest.mark.parametrize(
    "target", [x for x in targets() if not x.rounds_bf16], ids=str
)
WIDENS = pytest.mark.parametrize(
    "target", [x for x in HERE if not x.widens_f16], ids=str
)
ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
SPECIAL = (0, 0x8000_0000, 0x7F80_0000, 0xFF80_0000, 0x7F7F_FFFF, 1, 0x8000, 0x18000)
NANS = (0x7F80_0001, 0xFF80_0001, 0x7FC0_0000, 0x7FFF_FFFF)
NUMPY = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "f8E4M3": np.dtype(ml_dtypes.float8_e4m3),
}
LANES = 16


def cast(name: str) -> Any:
    return lambda b, x: b.cast(x, NUMPY[name])


def added(b: Any, x: Any, y: Any) -> Any:
    return b.elementwise(lambda s, t: s + t, x, y)


def assembly(
    name: str, kind: str, make: Any, operands: int = 1, columns: int = 256
) -> list[str]:
    program = program_of(make, *[((64, columns), kind)] * operands)
    text = stage_text(program, "asm", by_name(name))
    return [line.strip() for line in text.splitlines()]


# ---- any two formats


def converted(given: str, wanted: str, x: np.ndarray) -> np.ndarray:
    """The numbers in another format, in vectors, by operations on integers alone."""
    more = FORMATS[given].bits < FORMATS[wanted].bits
    widths = FORMATS[given].bits, FORMATS[wanted].bits

    def body(lanes: ir.Value) -> ir.Value:
        i32 = lanes.type
        here, there = (
            with_element(i32, ir.IntegerType.get_signless(n)) for n in widths
        )
        source, result = (with_element(i32, ir.Type.parse(n)) for n in (given, wanted))
        narrow = lanes if here == i32 else arith.trunci(here, lanes)
        op = arith.extf if more else arith.truncf
        made = vector.bitcast(there, op(result, vector.bitcast(source, narrow)))
        return made if there == i32 else arith.extui(i32, made)

    with context():
        module = lanes_module(f"{LANES}xi32", 1, body)
        replace_casts(module, {(given, wanted)})
        assert "arith.extf" not in str(module) and "arith.truncf" not in str(module)
        function = Compiled(module)
    unsigned = [f"u{NUMPY[n].itemsize}" for n in (given, wanted)]
    got = function(x.view(unsigned[0]).astype(np.uint32))
    return got.astype(unsigned[1]).view(NUMPY[wanted])


def numbers(name: str) -> np.ndarray:
    """Any bits at all, or every number of the format; ties and special ones too."""
    if FORMATS[name].bits < 32:
        bits = np.arange(1 << FORMATS[name].bits, dtype=np.uint32)
        return bits.astype(f"u{NUMPY[name].itemsize}").view(NUMPY[name])
    rng = np.random.default_rng(5)
    near = np.ldexp(rng.uniform(-2, 2, 4096), rng.integers(-30, 20, 4096))
    return np.concatenate([floats(3, 4096), near.astype(np.float32)])


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (a, b)
        for a, b in permutations(FORMATS, 2)
        if FORMATS[a].bits != FORMATS[b].bits
        and {"f32", "f16"} & {a, b}  # no CPU here adds two of bf16
    ],
)
def test_all_numbers_of_formats(given: str, wanted: str) -> None:
    """As ml_dtypes has them, to the bit; what is NaN stays one, with its sign."""
    x = numbers(given)
    with np.errstate(over="ignore", invalid="ignore"):
        exact = x.astype(NUMPY[wanted])
    got = converted(given, wanted, x)
    unsigned = f"u{got.itemsize}"
    nan = np.isnan(x.astype(np.float32))
    same = got.view(unsigned) == exact.view(unsigned)
    assert nan.any() and same[~nan].all()
    assert np.isnan(got[nan].astype(np.float32)).all()
    assert (np.signbit(got) == np.signbit(x))[nan].all()
    assert not (np.roll(got.view(unsigned), 1) == exact.view(unsigned))[~nan].all()


# ---- f32 to bf16


def floats(seed: int, size: int) -> np.ndarray:
    """Any bits at all, ties and special numbers among them."""
    bits = np.random.default_rng(seed).integers(0, 1 << 32, size, np.uint32)
    bits[: len(SPECIAL)] = SPECIAL
    bits[100:400] &= 0xFFFF_8000  # half of them ties
    return bits.view(np.float32)


@ROUNDS
@pytest.mark.parametrize("size", [4099, 1])
def test_all_bits_but_those_of_a_nan(target: Any, size: int) -> None:
    x = floats(3, 4099)[:size]
    number = ~np.isnan(x)
    exact = np.where(number, x, 0).astype(ml_dtypes.bfloat16)
    got = run(cast("bf16"), x, target=target)
    same = got.view(np.uint16) == exact.view(np.uint16)
    assert number.any() and same[number].all()
    assert np.isnan(got[~number].astype(np.float32)).all()


@ROUNDS
def test_a_nan_stays_one(target: Any) -> None:
    """Also one whose bits are all in the lower half."""
    x = np.array(NANS * 5, np.uint32).view(np.float32)
    assert np.isnan(run(cast("bf16"), x, target=target).astype(np.float32)).all()


@pytest.mark.parametrize(
    ("name", "word"), [("x86-64-v3", "vpackusdw"), ("icelake-server", "vpmovdw")]
)
def test_vectors_of_bf16_are_not_taken_apart(name: str, word: str) -> None:
    lines = assembly(name, "float32", cast("bf16"))
    assert count(lines, word)
    assert not count(lines, "call") and not count(lines, "vpextr")


# ---- f16 to f32


@WIDENS
def test_all_numbers(target: Any) -> None:
    got, exact = run(cast("f32"), ALL, target=target), ALL.astype(np.float32)
    number = ~np.isnan(ALL)
    assert (got.view(np.uint32) == exact.view(np.uint32))[number].all()
    assert np.isnan(got[~number]).all()


@WIDENS
@pytest.mark.parametrize("bits", [0x0001, 0x83FF, 0x3C00, 0xFBFF, 0x7C00, 0xFC00])
def test_a_single_number(target: Any, bits: int) -> None:
    x = np.array([bits], np.uint16).view(np.float16)
    assert run(cast("f32"), x, target=target) == x.astype(np.float32)


@pytest.mark.parametrize("target", [t for t in TARGETS if not t.widens_f16], ids=str)
def test_vectors_are_not_taken_apart(target: Any) -> None:
    lines = assembly(target.name, "float16", cast("f32"))
    assert not count(lines, "call") and not count(lines, "pextr")
    products = ("mulps", "vfmul", "xvmulsp", "fmul.s")  # the last without vectors
    assert any(count(lines, word) for word in products)


def test_zvfh_widens_by_an_instruction() -> None:
    names = "riscv64+v", "riscv64+v+zvfhmin", "riscv64+v+zvfh"
    made = [assembly(name, "float16", cast("f32")) for name in names]
    found = [bool(count(lines, "vfwcvt.f.f.v")) for lines in made]
    assert found == [False, True, True]


# ---- vectors of any width


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("riscv64+v", "vfadd.vv"),  # of f32, which the shift below makes f16
        ("riscv64+v+zvfhmin", "vfncvt.f.f.w"),
        ("riscv64+v+zvfh", "vfadd.vv"),
        ("aarch64+sve", "fadd"),
    ],
)
def test_scalable_vectors_are_not_taken_apart(name: str, word: str) -> None:
    lines = assembly(name, "float16", added, 2, columns=250)
    assert count(lines, word) and not any("hfsf" in x or "sfhf" in x for x in lines)
    in_integers = name == "riscv64+v"
    assert bool(count(lines, "vnsrl.wi") or count(lines, "vsrl.vi")) == in_integers


@pytest.mark.parametrize("name", ["riscv64+v", "riscv64"])
def test_nothing_is_called_for_a_conversion(name: str) -> None:
    lines = assembly(name, "float32", cast("f16"), columns=250)
    assert any("or" in x.split()[:1] or "vor.vv" in x for x in lines)
    assert not count(lines, "call")


def test_numbers_that_are_only_moved_are_integers_to_llvm() -> None:
    program = program_of(added, ((64, 250), "bfloat16"), ((64, 250), "bfloat16"))
    for name, moved in (("riscv64+v", True), ("neoverse-v2", False)):
        assert "xbf16>" in stage_text(program, "vector", by_name(name))
        text = stage_text(program, "llvm", by_name(name))
        assert ("x i16>" in text and "x bfloat>" not in text) == moved
