"""Loops for llvm-mca, which need not be here: the cut, the limit, the refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import ports
from benchmarks.port_doubts import DOUBTS
from benchmarks.ports import (
    CORES,
    LAYERS,
    Row,
    main_loop,
    parse,
    products_of,
    sheet,
    steps,
)
from nanoloom.target import by_name
from nanoloom_papers.reproduce.llvm_mca import Refused

TEXT = """
kernel_0:
	vsetivli	zero, 4, e64, m1, ta, ma
.LBB0_1:
	vle64.v	v8, (a0)
	bnez	a0, .LBB0_1
	vsetvli	a3, zero, e32, m4, ta, ma
.LBB0_2:
	vl4re32.v	v8, (a0)
	vfmacc.vf	v12, fa0, v8
	addi	a0, a0, 64
	bnez	a0, .LBB0_2
"""


def test_the_loop_with_most_products_and_its_groups() -> None:
    loop = main_loop(TEXT)
    assert loop[:2] == ["# LLVM-MCA-RISCV-LMUL M4", "# LLVM-MCA-RISCV-SEW E32"]
    assert loop[2].startswith("vl4re32.v") and len(loop) == 6
    assert products_of(loop) == ["vfmacc.vf\tv12, fa0, v8"]
    with pytest.raises(Refused, match="there is no loop of products"):
        main_loop(TEXT.replace("vfmacc", "vadd"))


def test_the_kernel_with_most_products() -> None:
    assert steps("contraction_f32_4x4x6x6x64x32_7b5e2c10") == 576 * 2048
    assert steps("contraction_relu_f32_16x384x256_7b5e2c10") == 16 * 384 * 256
    assert steps("copy_f32_16x384_7b5e2c10") == steps("contraction") == 0


@pytest.mark.parametrize("core", CORES)
def test_every_core_has_a_target(core: str) -> None:
    assert by_name(core)


def test_the_limit_is_of_the_products_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A simulator that takes a cycle for each line."""

    def lines(mca: str, loop: list[str], target: object) -> tuple[str, float, float]:
        return str(target), float(len(loop)), float(len(loop))

    monkeypatch.setattr(ports, "simulate", lines)
    monkeypatch.setattr(ports, "found", str)
    monkeypatch.setattr(ports, "version_of", str)
    path = tmp_path / "loops.json"
    ports.main(["--only=znver4", f"--json={path}"])
    rows = json.loads(path.read_text())["loops"]
    assert [row["layer"] for row in rows] == list(LAYERS)
    for row in rows:
        assert row["limit"] == row["products"] >= 24
        assert row["limit"] < row["cycles"] <= 2 * row["limit"]
        assert row["percent"] == 100 * row["limit"] / row["cycles"]
    assert "znver4" in capsys.readouterr().out


def test_the_sheet() -> None:
    rows = [Row("product", "znver4", 12, 6, 8), Row("product", "znver5", note="no")]
    made = sheet(rows, "version")
    assert made.rows[0][2:] == ("12", "6.0", "8.0", "75")
    assert made.rows[1][2:] == ("", "", "", "")
    assert made.notes[-1] == "product on znver5: no"


@pytest.mark.parametrize(
    ("core", "loop", "without"),
    [
        ("znver5", ["vbroadcastss\t(%rax), %zmm1"], ["vmovups\t(%rax), %zmm1"]),
        ("spacemit-x60", [*TEXT.splitlines()[8:]], TEXT.splitlines()[8:10]),
    ],
)
def test_a_model_in_doubt(core: str, loop: list[str], without: list[str]) -> None:
    """A loop is simulated without what is in doubt; a note says what that gives."""
    lines = [line.strip() for line in loop]
    assert DOUBTS[core].without(lines) == [line.strip() for line in without]
    rows = [Row("product", core, 12, 6, 8, undoubted=6.5)]
    told = [f"product on {core}: 92 % {DOUBTS[core].so}", f"{core}: {DOUBTS[core].why}"]
    assert list(sheet(rows, "version").notes[-2:]) == told
    fast = Row("product", core, 12, 6, 6.6, undoubted=6.5)
    assert not fast.doubt


def test_an_unknown_core_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--only=cortex-a1"])
    assert "cortex-a1 is none of neoverse-v1, " in capsys.readouterr().err
