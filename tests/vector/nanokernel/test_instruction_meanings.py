"""Every instruction of x86 that is emitted has a definition, and does just that."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np
import pytest

from nanoloom.mlir import arith, ir
from nanoloom.target.host import this_machine
from nanoloom.vector.nanokernel.instructions import emit
from tests.sources import python
from tests.vector.math_harness import Array, Builder, Compiled
from tests.vector.nanokernel.instruction_meanings import MEANINGS, in_parts, meaning_of

# Of AMX: tiles_of_memory in the tests of nanokernel/amx says what they do.
TILES = re.compile(r"llvm\.x86\.(tile|tdp|\{\w+\}\.internal|_amx)")
PREFIX = re.compile(r"(llvm\.)?x86\.")
WIDTHS = {128: "sse4.2", 256: "avx2", 512: "avx512f"}
NUMBERS = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -1.5, 2.0], np.float32)


def names() -> Iterator[tuple[str, str]]:
    """The instructions' names in the package, with {} where something is put in."""
    for source in python("nanoloom"):
        if not source.path.startswith(("nanoloom/vector/", "nanoloom/target/dot")):
            continue
        joined = [node for node in source.nodes if isinstance(node, ast.JoinedStr)]
        inside = {id(part) for node in joined for part in node.values}
        for node in source.nodes:
            if id(node) not in inside and PREFIX.match(text := text_of(node)):
                yield source.path, text


def text_of(node: ast.AST) -> str:
    """A name that is written out, "" for other texts."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    values = [getattr(part, "value", None) for part in parts]
    text = "".join(v if isinstance(v, str) else "{}" for v in values)
    return "" if " " in text else text


def test_each_has_a_definition() -> None:
    """By what it begins with, where its width is put in."""
    found = list(names())
    assert len(found) > 10
    for path, name in found:
        if TILES.match(name) or name in ("llvm.x86.{}", "llvm.x86.{}.internal"):
            continue
        begin = re.escape(name.partition("{")[0])
        known = [p for p, _ in MEANINGS if re.match(begin, re.sub(r"\\(.)", r"\1", p))]
        assert known, f"{path}: nobody says what {name} does"


def test_a_missing_definition_is_seen() -> None:
    with pytest.raises(KeyError, match="pclmulqdq"):
        meaning_of("llvm.x86.pclmulqdq")


def word(number: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(32), number)


def both(
    kind: str, operands: int, build: Builder, *inputs: Array
) -> tuple[Array, Array]:
    """What an instruction and its definition make of arrays."""

    def by(door: Builder) -> Array:
        return Compiled.build(kind, operands, lambda *x: build(door, *x))(*inputs)

    return by(emit), by(in_parts)


def pairs() -> tuple[Array, Array]:
    """Every number beside every other."""
    one, other = np.meshgrid(NUMBERS, NUMBERS)
    return one.ravel(), other.ravel()


def here(bits: int, *more: str) -> bool:
    return {WIDTHS[bits], *more} <= this_machine().extensions


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("name", ["max", "min"])
def test_the_larger_and_the_smaller(name: str, bits: int) -> None:
    function = {128: f"sse.{name}.ps", 256: f"avx.{name}.ps.256"}
    called = f"llvm.x86.{function.get(bits, f'avx512.{name}.ps.512')}"
    assert meaning_of(called)
    if not here(bits):
        return

    def build(door: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
        more = [word(4)] if bits == max(WIDTHS) else []
        return door(called, x.type, [x, y, *more])

    got, right = both(f"{bits // 32}xf32", 2, build, *pairs())
    assert got.tobytes() == right.tobytes()
    assert got.tobytes() != NUMBERS.repeat(8).tobytes()


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("choice", [0b0101, 0b0100])
def test_ranges(choice: int, bits: int) -> None:
    """Of a NaN the other one; of two NaN one, its bits are nobody's promise."""
    called = f"llvm.x86.avx512.mask.range.ps.{bits}"
    assert meaning_of(called)
    if not here(bits, "avx512dq", "avx512vl"):
        return
    lanes = bits // 32

    def build(door: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
        every = arith.constant(ir.IntegerType.get_signless(max(lanes, 8)), -1)
        more = [word(4)] if bits == max(WIDTHS) else []
        return door(called, x.type, [x, y, word(choice), x, every, *more])

    got, right = both(f"{lanes}xf32", 2, build, *pairs())
    assert np.array_equal(got, right, equal_nan=True)
    assert np.array_equal(np.signbit(got), np.signbit(right))


@pytest.mark.parametrize("table", [0b11101000, 0b11001010, 0b00000001])
def test_bits_of_three(table: int) -> None:
    called = "llvm.x86.avx512.pternlog.d.256"
    rng = np.random.default_rng(table)
    a, b, c = rng.integers(-(2**31), 2**31, (3, 64), np.int64).astype(np.int32)

    def build(door: Builder, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
        return door(called, x.type, [x, y, z, word(table)])

    def right() -> Array:
        made = np.zeros_like(a)
        for place in range(32):
            x, y, z = ((v >> place) & 1 for v in (a, b, c))
            made |= ((table >> (x << 2 | y << 1 | z)) & 1).astype(np.int32) << place
        return made

    code = Compiled.build("8xi32", 3, lambda *x: build(in_parts, *x))
    assert np.array_equal(code(a, b, c), right())
    if here(512, "avx512vl"):
        got, defined = both("8xi32", 3, build, a, b, c)
        assert np.array_equal(got, defined)
