"""Counted instructions beside those of C's loops: what is compiled, what is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import instructions
from benchmarks.instructions import IN_C, Row, in_c, parse, sheet
from nanoloom.runtime.emulation import machine
from nanoloom_papers.reproduce.instruction_counts import Count, counted


def test_the_product_in_c_is_made_of_vectors(tmp_path: Path, plugin: Path) -> None:
    """`product, C` reads a vector of columns for every number of a."""
    cpu = "riscv64+v"
    one, two = (in_c("product, C", cpu, turns, tmp_path) for turns in (1, 2))
    where = machine("riscv64+v:vlen=512")
    count = counted(plugin, where, two) - counted(plugin, where, one)
    products = 96 * 256 * 384
    assert products / (512 / 32 * 8) < count.vectors < count.all < products


@pytest.mark.parametrize("name", IN_C)
def test_loops_in_c_for_arm(name: str, tmp_path: Path) -> None:
    assert in_c(name, "aarch64+sve", 1, tmp_path).read_bytes()[:4] == b"\x7fELF"


def test_the_sheet() -> None:
    rows = [
        Row("softmax", "riscv64", Count(8000, 0)),
        Row("softmax", "riscv64+v:vlen=128", Count(2000, 1000), 2000, 8000),
        Row("softmax", "riscv64+v:vlen=256", Count(1000, 500), 2000, 8000),
        Row("softmax, C", "riscv64+v:vlen=256", Count(4000, 1000)),
    ]
    cells = [row[2:] for row in sheet(rows).rows]
    assert cells == [
        ("8,000", "0", "", "", ""),
        ("2,000", "50", "1.00x", "4.00x", ""),
        ("1,000", "50", "2.00x", "8.00x", ""),
        ("4,000", "25", "", "", "4.00x"),
    ]


def test_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "counts.json"
    instructions.main(["--only=gelu", "--machines=riscv64+v", f"--json={path}"])
    rows = json.loads(path.read_text())["instructions"]
    counts = [row["count"]["all"] for row in rows]
    assert len(counts) == 4 and counts == sorted(counts, reverse=True)
    assert counts[0] > 1.6 * counts[1]
    assert f"{counts[0]:,}" in capsys.readouterr().out


def test_what_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--only=product,sort"])
    assert "sort is none of product, softmax, " in capsys.readouterr().err
