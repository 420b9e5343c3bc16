"""Every instruction that is emitted is in the table, and x86's do what it says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np
import pytest

from nanoloom.ir.mlir import arith, ir
from nanoloom.target.host import this_machine
from nanoloom.target.instructions.choose import INSTRUCTIONS
from nanoloom.vector.nanokernel.instructions import emit
from tests.sources import python
from tests.vector.math_harness import Array, Builder, Compiled
from tests.vector.nanokernel.instruction_meanings import in_parts, instruction_named

# What a name begins with that is emitted, and what only measures machines.
PREFIX = re.compile(r"(llvm\.(x86|aarch64|riscv)|x86|amx|arm_\w+)\.\w")
MEASURES = ("nanoloom/target/peak_loops.py", "nanoloom/target/instructions/")
TYPES = ("llvm.x86_amx", "llvm.aarch64.sme")
# LLVM 22 calls one of them otherwise; what LLVM unrolls is told by how it begins.
SPELLINGS = ("llvm.aarch64.sve.bfmmla", "llvm.x86.tdp", "llvm.x86.{}.internal")
WIDTHS = {128: "sse4.2", 256: "avx2", 512: "avx512f"}
NUMBERS = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -1.5, 2.0], np.float32)


def names() -> Iterator[tuple[str, str]]:
    """The instructions' names in the package, with {} where something is put in."""
    for source in python("nanoloom"):
        if source.path.startswith(MEASURES):
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


def test_all_are_in_the_table() -> None:
    """Nothing but the table names an instruction that the compiler emits."""
    known = {x.function for x in INSTRUCTIONS}
    found = {name for _, name in names()} - {*SPELLINGS, *TYPES}
    assert found <= known, f"not in target/instructions: {sorted(found - known)}"


def test_a_missing_one_is_seen() -> None:
    with pytest.raises(KeyError, match="pclmulqdq"):
        instruction_named("llvm.x86.pclmulqdq")


def test_each_says_what_it_does() -> None:
    """But what moves tiles, or turns them on; and no name stands for two."""
    plain = [x for x in INSTRUCTIONS if x.meaning is None]
    moves = r"tile\w+|smst\w+|zero|(ld|st)1w"
    assert all(re.fullmatch(moves, x.name) for x in plain)
    own = [x.function for x in INSTRUCTIONS]
    assert len({*own}) == len(own)


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
    assert instruction_named(called)
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
    assert instruction_named(called)
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
