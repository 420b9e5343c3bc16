"""Inner loops for llvm-mca, which need not be here: the cut, the bound, the answer."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import inner_loops
from benchmarks.assembly import count
from benchmarks.assembly import inner_loops as cut
from benchmarks.inner_loops import CASES, Case
from nanoloom.target import by_name
from nanoloom_papers.reproduce import llvm_mca
from nanoloom_papers.reproduce.llvm_mca import Refused

NESTED = """
kernel_0:
	.cfi_startproc
	xorl	%eax, %eax
.LBB0_1:
	leaq	(%rsi,%rax), %rcx
	.p2align	4
.LBB0_2:                                # Parent Loop
	tileloadd	64(%r14,%r10), %tmm4
	# a comment
	tdpbf16ps	%tmm4, %tmm6, %tmm3
	addq	$64, %r14
	jb	.LBB0_2
	incq	%rax
	jne	.LBB0_1
	retq
"""
# A part of the outer loop, with its way out, in front of the inner one's head: what
# lies between a label and a jump to it is pieces of two loops.
ROTATED = """
kernel_0:
	li	a0, 0
	j	.LBB0_3
.LBB0_1:
	addi	a0, a0, 1
	beq	a0, a1, .LBB0_5
	vmv1r.v	v8, v9
	j	.LBB0_3
.LBB0_2:
	vfmacc.vf	v9, fa0, v4
	ld	a3, 8(sp)
	bgeu	a0, a3, .LBB0_1
.LBB0_3:
	li	a2, 9
.LBB0_4:
	vfmacc.vf	v8, fa0, v4
	addi	a2, a2, -1
	bnez	a2, .LBB0_4
	j	.LBB0_2
.LBB0_5:
	ret
"""
# An outer loop that begins with the inner one.
COMMON_HEAD = """
	jmp	.LBB0_3
.LBB0_2:
	incq	%rax
.LBB0_3:
	addq	$64, %r14
	jb	.LBB0_3
	jne	.LBB0_2
	retq
"""
LOOP = [
    "tileloadd\t64(%r14,%r10), %tmm4",
    "tdpbf16ps\t%tmm4, %tmm6, %tmm3",
    "addq\t$64, %r14",
    "jb\t.LBB0_2",
]
# What llvm-mca 14 and 19 print, but for the views that are not read.
ANSWER = {
    "CodeRegions": [
        {
            "Name": "",
            "SummaryView": {
                "BlockRThroughput": 12.0,
                "DispatchWidth": 6,
                "IPC": 3.7,
                "Instructions": 4500,
                "Iterations": 100,
                "TotalCycles": 1218,
                "TotaluOps": 4500,
                "uOpsPerCycle": 3.7,
            },
        }
    ]
}
UNKNOWN = """l.s:2:1: error: invalid instruction mnemonic 'vcvtneebf162ps'
vcvtneebf162ps (%r8), %ymm3
^~~~~~~~~~~~~~
"""
UNMODELLED = """error: found an unsupported instruction in the input assembly sequence.
note: instruction: \tvdpbf16ps\t%zmm1, %zmm2, %zmm3
"""


def test_the_loop_without_others_is_cut_out() -> None:
    assert cut(NESTED) == [LOOP]
    inner = ["vfmacc.vf\tv8, fa0, v4", "addi\ta2, a2, -1", "bnez\ta2, .LBB0_4"]
    assert cut(ROTATED) == [inner]
    assert cut(COMMON_HEAD) == [["addq\t$64, %r14", "jb\t.LBB0_3"]]
    assert count(["{vex}\tvpdpbusd\t%ymm1, %ymm2, %ymm3"], "vpdpb") == 1


def test_loads_stand_for_a_tile() -> None:
    loads = [f"vmovups\t64(%r14), %zmm{16 + row}" for row in range(16)]
    assert llvm_mca.for_llvm_mca(LOOP) == [*loads, *LOOP[2:]]


@pytest.mark.parametrize(
    ("family", "target", "products", "cycles"),
    [
        ("amx-bf16", "sapphirerapids", 4, 64),
        ("bf16-dot", "sapphirerapids", 8, 16),  # every other cycle
        ("bf16-dot", "znver5", 8, 4),
        ("fma", "skylake-avx512", 8, 4),
        ("bf16-halves", "skylake-avx512", 8, 4),
        ("int8-pairs", "skylake-avx512", 8, 8),  # as many additions
    ],
)
def test_the_bound(family: str, target: str, products: int, cycles: float) -> None:
    element = "bf16" if family.startswith("bf16") else ""
    case = Case(family, target, element, element, "")
    assert inner_loops.bound(case, products, by_name(target)) == cycles


def test_every_case_has_its_instruction() -> None:
    for case in CASES:
        loop, tile = inner_loops.compiled(case, (32, 256, 64))
        assert count(loop, case.word) > 0, case
        assert tile.count("x") == 1


def test_another_family_is_not_shown_for_it() -> None:
    case = Case("bf16-dot", "skylake-avx512", "bf16", "bf16", "vfmadd")
    with pytest.raises(Refused, match="with another family"):
        inner_loops.compiled(case, (8, 8, 8))
    with pytest.raises(Refused, match="no loop of its products"):
        inner_loops.compiled(replace(CASES[0], word="vfmadd"), (32, 64, 32))


def test_the_answer_is_read() -> None:
    assert llvm_mca.cycles(json.dumps(ANSWER)) == (12.0, 12.18)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (UNKNOWN, "does not know vcvtneebf162ps"),
        (UNMODELLED, "model has no vdpbf16ps"),
        ("", "refused: it said nothing"),
    ],
)
def test_refusals_are_one_sentence(said: str, words: str) -> None:
    assert llvm_mca.reason(said).endswith(words)


def stub(folder: Path, body: str) -> str:
    """A program in place of llvm-mca."""
    path = folder / "llvm-mca"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps(ANSWER).replace("1218", "12180"))
    told = tmp_path / "told.json"
    words = ["--only", "int8-pairs", "--size", "24x32x64", "--json", str(told)]
    inner_loops.main([*words, "--mca", stub(tmp_path, f"cat {answer}")])
    said = capsys.readouterr().out
    assert "int8-pairs" in said and "skylake-avx512" in said
    (made,) = json.loads(told.read_text())["loops"]
    assert made["block"] == 12.0 and made["cycles"] == 121.8
    assert made["percent_of_bound"] == pytest.approx(100 * made["bound"] / 121.8)


def test_fewer_cycles_than_the_bound_are_a_model_s_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps(ANSWER))
    told = tmp_path / "told.json"
    words = ["--only", "int8-pairs", "--size", "24x32x64", "--json", str(told)]
    inner_loops.main([*words, "--mca", stub(tmp_path, f"cat {answer}")])
    said = capsys.readouterr().out
    assert "the model of skylake-avx512 has more units for this than the core" in said
    (made,) = json.loads(told.read_text())["loops"]
    assert made["bound"] > made["cycles"] == 12.18
    assert made["percent_of_bound"] is None


def test_what_it_does_not_know_stands_below(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It goes on without the line and gives an answer: that is not one."""
    said = "echo \"l.s:1: error: invalid instruction mnemonic 'vpmaddwd'\" >&2; echo {}"
    words = ["--only", "int8-pairs", "--size", "24x32x64"]
    inner_loops.main([*words, "--mca", stub(tmp_path, said)])
    assert "llvm-mca does not know vpmaddwd" in capsys.readouterr().out


def test_an_unknown_processor_has_the_nearest(tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps(ANSWER))
    body = f"""case "$*" in
      *alderlake*) cat {answer};;
      *) echo "is not a recognized processor for this target" >&2; cat {answer};;
    esac"""
    program = stub(tmp_path, body)
    found = llvm_mca.simulate(program, LOOP, by_name("arrowlake-s"))
    assert found == ("alderlake", 12.0, 12.18)
    with pytest.raises(Refused, match="no model of znver5"):
        llvm_mca.simulate(program, LOOP, by_name("znver5"))


def test_without_llvm_mca(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        inner_loops.main(["--mca", "no-such-llvm-mca"])
    assert end.value.code == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("inner_loops: no-such-llvm-mca is not installed")
    assert said.err.count("\n") == 1


def test_wrong_words(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--only", "avx"], ["--size", "3x4"]):
        with pytest.raises(SystemExit) as end:
            inner_loops.main(words)
        assert end.value.code == 2
    assert "is not like 96x256x256" in capsys.readouterr().err
