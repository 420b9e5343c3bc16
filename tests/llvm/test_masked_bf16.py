"""Masked loads and stores of bf16 are of integers: no calls of a compiler's library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nanoloom.ir import mlir
from nanoloom.ir.mlir import ir
from nanoloom.llvm.masked_bf16 import mask_integers
from nanoloom.target import by_name
from tests.filecheck import check_text
from tests.linalg.bounds import sample, wide
from tests.vector.checks import check
from tests.vector.kernel_harness import backwards, program_of, run, stage_text, targets

LOADS = """
llvm.func @f(%p: !llvm.ptr, %m: vector<8xi1>, %rest: vector<8x{0}>) {{
  %x = llvm.intr.masked.load %p, %m, %rest {{alignment = 2 : i32}}
    : (!llvm.ptr, vector<8xi1>, vector<8x{0}>) -> vector<8x{0}>
  llvm.intr.masked.store %x, %p, %m {{alignment = 2 : i32}}
    : vector<8x{0}>, vector<8xi1> into !llvm.ptr
  llvm.return
}}
"""


def rewritten(element: str) -> str:
    with mlir.context():
        module = ir.Module.parse(LOADS.format(element))
        mask_integers(module)
        module.operation.verify()
        return str(module)


def test_bf16_becomes_i16() -> None:
    check_text(
        rewritten("bf16"),
        """
    CHECK: [[REST:%.*]] = llvm.bitcast {{.*}} : vector<8xbf16> to vector<8xi16>
    CHECK: [[X:%.*]] = llvm.intr.masked.load {{.*}}, [[REST]] {alignment = 2 : i32}
    CHECK-SAME: -> vector<8xi16>
    CHECK: llvm.bitcast [[X]] : vector<8xi16> to vector<8xbf16>
    CHECK: llvm.intr.masked.store {{.*}} {alignment = 2 : i32} : vector<8xi16>
    """,
    )


@pytest.mark.parametrize("element", ["f16", "f32", "i16", "i8"])
def test_others_stay(element: str) -> None:
    assert "bitcast" not in rewritten(element)


@pytest.mark.parametrize("target", targets(), ids=str)
def test_two_activations_with_an_edge(target: Any) -> None:
    """The columns' edge is read through masks."""
    x, w = sample(1, (33, 35), "bfloat16"), sample(2, (35, 100), "bfloat16")

    def make(b: Any, x: Any, w: Any) -> Any:
        return b.einsum("mk,kn->mn", x, w, dtype=np.dtype(np.float32))

    got = run(make, x, w, target=target, order=backwards)
    check(got, wide(x) @ wide(w), 36, abs(wide(x)) @ abs(wide(w)))
    program = program_of(make, x, w)
    assert "truncsfbf2" not in stage_text(program, "asm", by_name("x86-64-v3"))
