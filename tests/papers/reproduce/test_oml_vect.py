"""Whole models, inner loops and memory of the OML-vect paper's measurements."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from nanoloom.compile_program import compile
from nanoloom.errors import Error
from nanoloom.options import CompileOptions
from nanoloom.target import by_name
from nanoloom.target.host import host
from nanoloom_papers.affine.strategies import strategy_named
from nanoloom_papers.reproduce import llvm_mca, oml_cycles
from nanoloom_papers.reproduce.llvm_mca import Refused
from nanoloom_papers.reproduce.oml_case import whole_case
from nanoloom_papers.reproduce.oml_costs import high_water, peak
from nanoloom_papers.reproduce.oml_cycles import (
    cycles,
    group_before,
    instructions,
    work,
)
from nanoloom_papers.reproduce.oml_models import LAYERS
from nanoloom_papers.reproduce.oml_whole import TINY_WHOLE, WHOLE, Whole

RVV, AVX2 = by_name("rv64gcv-zvl512b"), by_name("x86-64-v3")
LOOP = """
# a comment
	.text
one:
	vsetvli	zero, a4, e32, m4, ta, ma
	vmv.v.i	v24, 0
.L1:
	vle32.v	v8, (a0)
	vfmacc.vv	v24, v8, v8
	addi	a0, a0, 256
	bne	a0, a1, .L1
	vsetivli	zero, 2, e32, mf2, tu, ma
	ret
"""
ROUND = ["vle32.v\tv8, (a0)", "vfmacc.vv\tv24, v8, v8", "addi\ta0, a0, 256"]


@pytest.mark.parametrize("whole", TINY_WHOLE, ids=lambda each: each.layer.name)
def test_a_whole_model(whole: Whole, tmp_path: Path) -> None:
    case = whole_case(whole, tmp_path)
    options = CompileOptions(host(), strategy=strategy_named("affine"))
    (got,) = compile(case.model, threads=1, options=options)(case.feeds).values()
    assert not case.wrong(got)
    assert case.wrong(np.roll(got, 1, -1))
    names = [each.name for each in case.model.graph.initializer]
    assert len(names) == len(set(names))  # each layer has its own weights


def test_all_layers_have_a_whole_model() -> None:
    assert [each.layer.name for each in WHOLE] == [each.name for each in LAYERS]


def test_work_of_a_loop() -> None:
    assert group_before(LOOP, ROUND) == 4  # not that of what stands behind it
    assert work(ROUND, 4, RVV) == 64 and work(ROUND, 0.5, RVV) == 8
    fused = ["vfmadd231ps\t%ymm1, %ymm2, %ymm3", "vfmadd213ss\t(%rax), %xmm1, %xmm2"]
    assert work([*fused, "vaddps\t%ymm1, %ymm2, %ymm3"], 1, AVX2) == 9
    assert work(["fmadd.s\tfa0, fa1, fa2, fa0"], 1, RVV) == 1
    assert instructions(LOOP) == 8


def test_the_largest_product_is_looked_at() -> None:
    sizes = [
        oml_cycles.size_of(name)
        for name in (
            "reduction_f32_32x384_8",
            "contraction_f32_2x3x40_0c",
            "contraction_f32_12x32x32x32_f6",
        )
    ]
    assert sizes == [0, 240, 12 * 32**3]


def test_what_llvm_mca_does_not_know_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_mca, "MCA", ("no-such-llvm-mca",))
    with pytest.raises(Refused, match="llvm-mca is not installed"):
        cycles(LOOP, RVV, "sifive-x280")


def test_a_peak_of_memory(tmp_path: Path) -> None:
    """Of a process that is what it is called; that of a program that fails is none."""
    own = high_water(os.getpid(), Path("/proc/self/comm").read_text().strip())
    assert own is not None and own > 10_000
    assert high_water(os.getpid(), "another") is None
    with pytest.raises(Error, match="failed with"):
        peak(Path(sys.executable), tmp_path / "nothing.py")
