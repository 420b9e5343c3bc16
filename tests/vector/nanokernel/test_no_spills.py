"""No loop over a sum has a vector on the stack, on any target, of any numbers.

The sizes divide nothing: tiles reach over every edge.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

from nanoloom.kernels.program import Program
from nanoloom.target import TARGETS, by_name
from tests.linalg.bounds import sample
from tests.vector.assembly import count, inner_loops
from tests.vector.kernel_harness import program_of, stage_text
from tests.vector.nanokernel.test_every_choice import KINDS

# Without vectors, or with those of the row of another core.
LEFT_OUT = {"riscv64", "haswell", "skylake", "cascadelake", "znver3", "cortex-x2",
            "neoverse-n1", "neoverse-n2"}  # fmt: skip
NAMES = [t.name for t in TARGETS if t.name not in LEFT_OUT]
SIZES = (
    (1, 768, 768),
    (3, 130, 517),
    (97, 17, 64),  # whose tiles are of other rows and vectors, on three targets of four
    (127, 333, 517),
)
FLOATS = ("float32", "float64")  # all that targets of PowerPC promise
# Other numbers of the same loops: fewer sizes.
SAME = {"skylake-avx512", "graniterapids", "znver5", "arrowlake-s", "sierraforest",
        "cortex-a72", "cortex-a76", "neoverse-v2", "apple-m1", "rv64gcv-zvl256b",
        "rv64gcv-zvl512b", "sifive-x280", "spacemit-x60", "power10"}  # fmt: skip
# Bytes are multiplied by plain loops there.
OF_FLOATS = {"powerpc64le", "power9", "power10", "x86-64-v1"}
PRODUCTS = re.compile(
    r"v?fmadd|mulp[sd]|vpdp|vdp|v?pmaddwd|tdp"
    r"|fmla|[us]mlal|mla|bfdot|bfmla|[us]+dot"
    r"|vfw?macc|vfmadd|vw?macc|vmadd|xvmadd"
)
VECTOR = re.compile(r"[xyz]mm|\b[qvzd]\d+\b|^(l|st)xv")
# No register but the stack pointer: the copies of a task lie there, too.
PLACE = re.compile(r"-?\d*\(%rsp\)|\[sp(, #[^]]*)?\]|\(sp\)|\(1\)| 1, \d+$")
LENGTH = "vlenb"  # what RISC-V computes the address of a spilled vector from
SUMS_OF_TILES = "tilestored"  # leave AMX's registers through the stack


def loops_of_products(text: str) -> list[list[str]]:
    """The inner loops with products, but for those over whole tiles of AMX."""
    loops = [[line.removeprefix("{vex}\t") for line in x] for x in inner_loops(text)]
    return [
        loop
        for loop in loops
        if any(PRODUCTS.match(line) for line in loop) and not count(loop, SUMS_OF_TILES)
    ]


def spills(text: str) -> list[str]:
    """The vectors on the stack in loops of products."""
    lines = [line for loop in loops_of_products(text) for line in loop]
    return [x for x in lines if LENGTH in x or (PLACE.search(x) and VECTOR.search(x))]


@cache
def product(kind: str, m: int, k: int, n: int, activation: bool) -> Program:
    """By a weight or another activation: the same kernels for all targets."""
    right = sample(n, (k, n), "int8" if kind == "uint8" else kind)

    def make(b: Any, x: Any, *w: Any) -> Any:
        given = w[0] if w else b.constant(right)
        return b.einsum("mk,kn->mn", x, given, dtype=np.dtype(KINDS[kind]))

    others = [((k, n), right.dtype.name)] if activation else []
    return program_of(make, ((m, k), kind), *others)


@pytest.mark.drawn(one_in=22)
@pytest.mark.parametrize(
    ("target", "kind"),
    [
        (name, kind)
        for name in NAMES
        for kind in KINDS
        if kind in FLOATS or name not in OF_FLOATS
    ],
)
def test_no_vector_is_spilled(target: str, kind: str) -> None:
    for m, k, n in SIZES[2:] if target in SAME else SIZES:
        for activation in (False, True) if n % 2 else (False,):
            program = product(kind, m, k, n, activation)
            text = stage_text(program, "asm", by_name(target))
            assert loops_of_products(text) or SUMS_OF_TILES in text, (m, k, n)
            assert spills(text) == [], (m, k, n, activation)


def test_a_spilled_vector_would_be_found() -> None:
    text = """
    .LBB0_1:
        vmovups 64(%rsp), %zmm1
        vmovups 64(%rsp,%rax), %zmm2
        movq 8(%rsp), %rax
        vfmadd231ps %zmm1, %zmm2, %zmm3
        vfmadd231ps %zmm1, %zmm2, %zmm4
        vfmadd231ps %zmm1, %zmm2, %zmm5
        vfmadd231ps %zmm1, %zmm2, %zmm6
        jne .LBB0_1
    """
    assert spills(text) == ["vmovups 64(%rsp), %zmm1"]


def test_a_spilled_vector_of_unknown_length_would_be_found() -> None:
    text = """
    .LBB0_1:
        ld a4, 400(sp)
        csrr a2, vlenb
        add a2, a2, sp
        vl1r.v v27, (a2)
        vfmacc.vf v4, fa1, v27
        vfmacc.vf v5, fa2, v27
        vfmacc.vf v6, fa3, v27
        vfmacc.vf v7, fa4, v27
        bne s5, s7, .LBB0_1
    """
    assert spills(text) == ["csrr a2, vlenb"]
