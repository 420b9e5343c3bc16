"""Floating literals of LLVM 24 reach LLVM 22 with every bit in place."""

from __future__ import annotations

import re
import subprocess
import sys

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest

from nanoloom.binary.objects import emit
from nanoloom.ir.mlir import context, ir
from nanoloom.ir.mlir import llvm as llvm_dialect
from nanoloom.llvm.float_literals import to_llvm22
from tests.runtime.native import TRIPLE

TYPES = {
    "f32": (np.float32, np.uint32, "float", 23),
    "f64": (np.float64, np.uint64, "double", 52),
    "f16": (np.float16, np.uint16, "half", 10),
    "bf16": (ml_dtypes.bfloat16, np.uint16, "bfloat", 7),
}


def patterns(name: str, count: int) -> np.ndarray:
    """Random bits, short decimals, and everything at the edges of the format."""
    random = np.random.default_rng(11)
    dtype, unsigned, _, mantissa = TYPES[name]
    bits = np.dtype(unsigned).itemsize * 8
    raw = np.frombuffer(random.bytes(count * bits // 8), unsigned)
    quiet, infinity = 1 << (mantissa - 1), (1 << (bits - 1)) - (1 << mantissa)
    edges = [0, 1, 2, (1 << mantissa) - 1, 1 << mantissa, infinity - 1, infinity]
    edges += [infinity | 1, infinity | 3, infinity | quiet, infinity | quiet | 5]
    edges += [infinity | (1 << mantissa) - 1]
    edges += [edge | 1 << (bits - 1) for edge in edges]
    short = np.round(random.standard_normal(count), 3).astype(dtype).view(unsigned)
    return np.unique(np.concatenate([raw, np.array(edges, unsigned), short]))


def llvm24(name: str, bits: np.ndarray) -> str:
    """Text of a global array of the values, and of a sum with each of them."""
    digits = np.dtype(bits.dtype).itemsize * 2
    values = [f"0x{int(value):0{digits}X}" for value in bits]
    functions = "\n".join(
        f"llvm.func @with_{index}(%x: {name}) -> {name} {{"
        f" %c = llvm.mlir.constant({value} : {name}) : {name}"
        f" %s = llvm.fadd %x, %c : {name}  llvm.return %s : {name} }}"
        for index, value in enumerate(values)
    )
    source = (
        f"llvm.mlir.global @all(dense<[{', '.join(values)}]> : "
        f"tensor<{len(bits)}x{name}>) : !llvm.array<{len(bits)} x {name}>\n{functions}"
    )
    with context():
        module = ir.Module.parse(source)
        return llvm_dialect.translate_module_to_llvmir(module.operation)


@pytest.mark.parametrize("name", TYPES)
def test_data_keeps_every_bit(name: str) -> None:
    bits = patterns(name, 2000)
    text = llvm24(name, bits).split("define", maxsplit=1)[0]
    cpu = "x86-64" if TRIPLE.startswith("x86") else "generic"
    assert bits.tobytes() in emit(text, triple=TRIPLE, cpu=cpu)
    assert bits[::-1].tobytes() not in emit(text, triple=TRIPLE, cpu=cpu)


@pytest.mark.parametrize("name", TYPES)
def test_operands_are_the_same_literals_as_data(name: str) -> None:
    bits = patterns(name, 200)
    kind = TYPES[name][2]
    with (
        llvm.create_context() as own,
        llvm.parse_assembly(to_llvm22(llvm24(name, bits)), own) as module,
    ):
        module.verify()
        printed = str(module)
    [array] = re.findall(r"@all = global \[.*?\] \[(.*)\]", printed)
    data = [word.removeprefix(f"{kind} ") for word in array.split(", ")]
    operands = re.findall(rf"fadd {kind} %0, (\S+)", printed)
    assert len(data) == len(bits)
    assert operands == data


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ("fadd float %a, 1.000000e-01", "fadd float %a, 0x3FB99999A0000000"),
        ("%double = fadd float %double, +inf", "0x7FF0000000000000"),
        ("fadd double %float, 1.0", "fadd double %float, 0x3FF0000000000000"),
        ('fadd half %"x double ", 1.5', 'fadd half %"x double ", 0xH3E00'),
        ("splat (bfloat 1.5)", "splat (bfloat 0xR3FC0)"),
        ("phi float [ 1.5, %a ], [ -2.0, %b ]", "[ 0xC000000000000000, %b ]"),
        ("store <2 x half> <half 1.5, half +qnan>, ptr %p", "half 0xH7E00>"),
        ("!0 = !{float 2.500000e+00}", "!{float 0x4004000000000000}"),
        ("select i1 %c, float 0.5, float %x", "float 0x3FE0000000000000, float %x"),
    ],
)
def test_type_of_a_literal(line: str, want: str) -> None:
    assert want in to_llvm22(line)


@pytest.mark.parametrize(
    "line",
    [
        'source_filename = "float 1.5"',
        '@text = constant [9 x i8] c"float 1.5"',
        'call void asm "float 1.5 ", ""()',
        "%x = add i32 %y, 15",
        "br label %float1.5",
        "load float, ptr @a.1.5",
        "; version 1.5",
        "",
    ],
)
def test_other_text_stays(line: str) -> None:
    assert to_llvm22(line) == line


def test_a_decimal_is_rounded_once() -> None:
    """A hair above the middle of 1 and its neighbour, which a double cannot tell."""
    middle = "1.000000059604644775390625"
    assert to_llvm22(f"float {middle}").endswith(" 0x3FF0000000000000")
    assert to_llvm22(f"float {middle}0000001").endswith(" 0x3FF0000020000000")
    assert np.float32(np.float64(f"{middle}0000001")) == 1.0


def test_bad_text_does_not_end_the_process() -> None:
    """In a process of its own, which must live to print."""
    script = (
        "from nanoloom.binary.objects import emit\n"
        "for text in ('define', 'define float @f() { ret double 0.5 }'):\n"
        "    try: emit(text, triple='x86_64-unknown-linux-gnu', cpu='x86-64')\n"
        "    except RuntimeError as error: print('refused', type(error).__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "refused RuntimeError\n" * 2
