"""No loop over a sum has a vector on the stack, on any target, of any numbers.

The sizes divide nothing: tiles reach over every edge.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nanoloom.target import TARGETS, by_name
from tests.linalg.bounds import sample
from tests.vector.assembly import inner_loops
from tests.vector.kernel_harness import program_of, stage_text
from tests.vector.nanokernel.test_every_choice import KINDS

NAMES = [t.name for t in TARGETS]
SIZES = (1, 768, 768), (33, 17, 64), (97, 130, 100), (130, 768, 1000), (127, 333, 517)
PRODUCTS = re.compile(
    r"v?fmadd|mulp[sd]|vpdp|vdp|v?pmaddwd|tdp"
    r"|fmla|[us]mlal|mla|bfdot|bfmla|[us]+dot"
    r"|vfmacc|vfmadd|vmacc|vmadd"
)
VECTOR = re.compile(r"[xyz]mm|\b[qvzd]\d+\b")
# No register but the stack pointer: the copies of a task lie there, too.
PLACE = re.compile(r"-?\d*\(%rsp\)|\[sp(, #[^]]*)?\]|\(sp\)")
LENGTH = "vlenb"  # what RISC-V computes the address of a spilled vector from


def loops_of_products(text: str) -> list[list[str]]:
    """The inner loops that are products for a sixteenth at least.

    Where numbers are converted by others that is much; less are loops over tiles.
    """
    loops = [[line.removeprefix("{vex}\t") for line in x] for x in inner_loops(text)]
    counts = [sum(PRODUCTS.match(line) is not None for line in x) for x in loops]
    return [
        loop
        for loop, count in zip(loops, counts, strict=True)
        if count >= max(4, len(loop) / 16)
    ]


def spills(text: str) -> list[str]:
    """The vectors on the stack in loops of products."""
    lines = [line for loop in loops_of_products(text) for line in loop]
    return [x for x in lines if LENGTH in x or (PLACE.search(x) and VECTOR.search(x))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", NAMES)
def test_no_vector_is_spilled(target: str, kind: str) -> None:
    seen = 0
    for m, k, n in SIZES:
        right = sample(n, (k, n), "int8" if kind == "uint8" else kind)
        weight = ((k, n), right.dtype.name)
        for activation in ((), (weight,)):

            def make(b: Any, x: Any, *w: Any, right: np.ndarray = right) -> Any:
                given = w[0] if w else b.constant(right)
                return b.einsum("mk,kn->mn", x, given, dtype=np.dtype(KINDS[kind]))

            product = program_of(make, ((m, k), kind), *activation)
            text = stage_text(product, "asm", by_name(target))
            seen += len(loops_of_products(text))
            assert spills(text) == [], (m, k, n, activation)
    assert seen >= len(SIZES)


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
