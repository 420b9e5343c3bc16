"""8-bit products with 32-bit sums: every family, every pair of signs, exactly."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nanoloom.target import by_name
from tests.linalg.bounds import sample
from tests.vector.assembly import count, loop_with
from tests.vector.checks import check
from tests.vector.kernel_harness import (
    Array,
    backwards,
    program_of,
    run,
    stage_text,
)
from tests.vector.nanokernel.reference import machine

I32 = np.dtype(np.int32)
DTYPES = {"s": "int8", "u": "uint8"}
CASES = [  # signs of the left and of the right operand, rows, depth, columns
    ("us", 1, 6, 17),
    ("ss", 5, 35, 100),
    ("su", 33, 130, 17),
    ("uu", 33, 35, 100),
    ("ss", 1, 130, 100),
    ("uu", 5, 6, 17),
]
TARGETS = (
    ("znver5", "int8-dot"),
    ("alderlake", "int8-dot"),
    ("sierraforest", "int8-dot"),
    ("neoverse-v1", "int8-dot"),
    ("apple-m1", "int8-dot"),
    ("skylake-avx512", "int8-pairs"),
    ("x86-64-v3", "int8-pairs"),
    ("x86-64-v2", "int8-pairs"),
    ("aarch64", "int8-lanes"),
)
EACH = pytest.mark.parametrize("name, family", TARGETS, ids=[n for n, _ in TARGETS])


def of_many_rows(family: str, name: str, rows: int) -> str:
    """The family where rows share what is made of columns (test_inner_products.py)."""
    return "int8-inner" if name == "x86-64-v3" and rows >= 16 else family


def numbers(seed: int, sign: str, *shape: int) -> Array:
    """All of a type's range, its ends among them."""
    made = sample(seed, shape, DTYPES[sign], -128, 255)
    limits = np.iinfo(made.dtype)
    made.reshape(-1)[: made.size // 3] = limits.min
    made.reshape(-1)[-(made.size // 3) :] = limits.max
    return made


def product(equation: str, right: Array, *, packed: bool) -> Any:
    if packed:
        return lambda b, x: b.einsum(equation, x, b.constant(right), dtype=I32)
    return lambda b, x, w: b.einsum(equation, x, w, dtype=I32)


def exact(equation: str, left: Array, right: Array) -> Array:
    wide = np.einsum(equation, left.astype(np.int64), right.astype(np.int64))
    return wide.astype(np.int32)


def compare(
    equation: str, left: Array, right: Array, target: Any, *, packed: bool
) -> str:
    """Check the numbers; gives the family."""
    make = product(equation, right, packed=packed)
    given = (left,) if packed else (left, right)
    got = run(make, *given, target=target, order=backwards)
    check(got, exact(equation, left, right), 0)
    script = stage_text(program_of(make, *given), "schedule", target)
    return script.split('family = "')[-1].split('"')[0]


@pytest.mark.drawn
@EACH
@pytest.mark.parametrize("signs, m, k, n", CASES)
def test_weights(
    name: str, family: str, signs: str, m: int, k: int, n: int, monkeypatch: Any
) -> None:
    target = machine(name, monkeypatch)
    left, right = numbers(m, signs[0], m, k), numbers(n, signs[1], k, n)
    found = compare("mk,kn->mn", left, right, target, packed=True)
    assert found == of_many_rows(family, name, m)


@pytest.mark.parametrize(("rows", "bits"), [(16, 16), (160, 16), (15, 0), (1, 0)])
def test_panels_that_rows_share_are_wide(rows: int, bits: int) -> None:
    """Nothing is widened in the loop then, not even once for a tile."""
    right, target = numbers(2, "s", 96, 64), by_name("x86-64-v3")
    make = product("mk,kn->mn", right, packed=True)
    program = program_of(make, ((rows, 96), "uint8"))
    assert f"bits = {bits} : i64" in stage_text(program, "schedule", target)
    loop = loop_with(stage_text(program, "asm", target), "vpmaddwd")
    assert bool(count(loop, "vpmovsxbw")) == (not bits)


@pytest.mark.drawn
@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v2", "skylake-avx512"])
@pytest.mark.parametrize("columns", [8, 64, 200])
def test_rounds_of_pairs(name: str, columns: int) -> None:
    """What a loop itself costs, its prefetch too, is little beside its products."""
    right, target = numbers(2, "s", 256, columns), by_name(name)
    make = product("mk,kn->mn", right, packed=True)
    text = stage_text(program_of(make, ((160, 256), "uint8")), "asm", target)
    loop = loop_with(text, "vpmaddwd" if "v2" not in name else "pmaddwd")
    others = [line for line in loop if not re.search("[xyz]mm", line)]
    assert len(others) <= len(loop) / 8


@pytest.mark.drawn
@pytest.mark.parametrize("depth, register", [(96, "ymm"), (128, "ymm"), (24, "xmm")])
@pytest.mark.parametrize("sign, word", [("u", "vpmovzxbw"), ("s", "vpmovsxbw")])
def test_rows_are_widened_in_whole_registers(
    depth: int, register: str, sign: str, word: str
) -> None:
    """Sixteen numbers, where they divide a row; and what is widened is right."""
    left, right = numbers(1, sign, 33, depth), numbers(2, "s", depth, 64)
    target = by_name("x86-64-v3")
    compare("mk,kn->mn", left, right, target, packed=True)
    program = program_of(product("mk,kn->mn", right, packed=True), left)
    text = stage_text(program, "asm", target)
    found = set(re.findall(rf"{word}\s[^\n]*%([xy]mm)", text))
    assert found == {register}


@pytest.mark.drawn
@EACH
@pytest.mark.parametrize("signs", ["us", "ss"])
def test_two_activations(name: str, family: str, signs: str, monkeypatch: Any) -> None:
    target = machine(name, monkeypatch)
    left, right = numbers(3, signs[0], 13, 35), numbers(4, signs[1], 35, 43)
    found = compare("mk,kn->mn", left, right, target, packed=False)
    assert found in (family, "int8-pairs", "int8-lanes")


@pytest.mark.drawn
@EACH
@pytest.mark.parametrize(
    ("equation", "left", "right", "signs"),
    [
        ("mjk,jkn->mn", (7, 3, 6), (3, 6, 19), "ss"),
        ("mjk,jkn->mn", (7, 3, 6), (3, 6, 19), "uu"),
        ("bmk,bkn->bmn", (2, 7, 9), (2, 9, 33), "ss"),
        ("mk,nk->mn", (13, 7), (31, 7), "ss"),
        ("km,kn->mn", (9, 7), (9, 33), "ss"),
    ],
)
def test_forms(
    equation: str,
    left: tuple[int, ...],
    right: tuple[int, ...],
    signs: str,
    name: str,
    family: str,
    monkeypatch: Any,
) -> None:
    target = machine(name, monkeypatch)
    one, other = numbers(1, signs[0], *left), numbers(2, signs[1], *right)
    found = compare(equation, one, other, target, packed=True)
    assert found == ("int8-lanes" if equation.startswith("km") else family)


@pytest.mark.drawn
@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v2", "skylake-avx512"])
@pytest.mark.parametrize("packed", [True, False])
def test_numbers_of_16_bits(name: str, packed: bool, monkeypatch: Any) -> None:
    """Four times the lowest number: a pair's products do not fit, and wrap."""
    left = sample(1, (33, 35), "int16", -(2**15), 2**15 - 1)
    right = sample(2, (35, 100), "int16", -(2**15), 2**15 - 1)
    left[:, :2] = right[:2] = -(2**15)
    target = machine(name, monkeypatch)
    found = compare("mk,kn->mn", left, right, target, packed=packed)
    assert found == "int16-pairs"


def test_sums_wrap(monkeypatch: Any) -> None:
    """70000 products of 255 * 255 do not fit in 32 bits."""
    left = np.full((1, 70000), 255, np.uint8)
    right = np.full((70000, 3), 255, np.uint8)
    for name in ("alderlake", "x86-64-v3"):
        with monkeypatch.context() as patch:
            compare("mk,kn->mn", left, right, machine(name, patch), packed=True)


@pytest.mark.drawn
@EACH
@pytest.mark.parametrize("result", ["float32", "int8"])
def test_an_epilogue(name: str, family: str, result: str, monkeypatch: Any) -> None:
    """The sums scaled, shifted and rounded while they are in registers."""
    x, w = numbers(5, "u", 33, 35), numbers(6, "s", 35, 100)
    x, w = x // 16, w // 16
    bias = sample(7, (100,), "int32", -500, 500)

    def make(b: Any, x: Any) -> Any:
        sums = product("mk,kn->mn", w, packed=True)(b, x)

        def body(s: Any, t: Any) -> Any:
            scaled = (s + t).cast(np.dtype(np.float32)) * 2.0**-6
            if result == "float32":
                return scaled
            whole = scaled.math("roundeven").maximum(-128.0).minimum(127.0)
            return whole.cast(np.dtype(np.int8))

        return b.elementwise(body, sums, b.constant(bias), dtype=np.dtype(result))

    wanted = (exact("mk,kn->mn", x, w) + bias) * 2.0**-6
    if result == "int8":
        wanted = np.clip(np.rint(wanted), -128, 127)
    target = machine(name, monkeypatch)
    got = run(make, x, target=target, order=backwards)
    assert (got == wanted).all()
    assert not (got == np.roll(wanted, 1, 0)).all()
    text = stage_text(program_of(make, x), "vector", target)
    assert "memref.alloc(" not in text  # the sums are never in memory
    expected = of_many_rows(family, name, 33)
    assert expected in stage_text(program_of(make, x), "schedule", target)


@pytest.mark.parametrize(("name", "count"), [("x86-64-v3", 2), ("neoverse-n1", 4)])
def test_bytes_of_a_row_are_written_together(name: str, count: int) -> None:
    """Two registers become one by an instruction that saturates."""
    right = numbers(2, "s", 64, 64)

    def make(b: Any, x: Any) -> Any:
        sums = product("mk,kn->mn", right, packed=True)(b, x)
        return b.elementwise(
            lambda s: s.maximum(-128).minimum(127).cast(np.dtype(np.int8)),
            sums,
            dtype=np.dtype(np.int8),
        )

    program, target = program_of(make, ((192, 64), "uint8")), by_name(name)
    text = stage_text(program, "vector", target)
    wide = target.lanes(32) * count
    assert f"vector<{wide}xi32> to vector<{wide}xi8>" in text
    if name == "x86-64-v3":
        assembly = stage_text(program, "asm", target)
        assert "vpackssdw" in assembly and "vpacksswb" in assembly
        assert "vpminsd" not in assembly
